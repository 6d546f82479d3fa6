#include "query_key_value.h"

namespace calque {

QueryKeyValue::QueryKeyValue(const Config& c)
    : heads(c.integer("num_attention_heads")),
      size(c.integer("hidden_size") / heads),
      query(child<Linear>("query", c.integer("hidden_size"), heads * size)),
      key(child<Linear>("key", c.integer("hidden_size"), heads * size)),
      value(child<Linear>("value", c.integer("hidden_size"), heads * size)),
      dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}

}  // namespace calque
