// A build without libsndfile.
#include "media/codec/codec.h"

namespace calque {

Waveform decode_with_sndfile(const SoundSource& source) {
  library_absent(source.what, "this kind of sound", "libsndfile", "libsndfile1-dev");
}

}  // namespace calque
