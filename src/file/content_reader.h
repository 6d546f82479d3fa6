// Who looks at the content of a checkpoint before its reader's caller does. A fake mode, which this room does not know, makes
// the tensors its own.
#pragma once

#include "calque/op/value.h"

namespace calque {

using ContentReader = Value (*)(Value content);
// For the whole process; called once, when the program starts.
void set_content_reader(ContentReader reader);

}  // namespace calque
