#include "text/byte_trie.h"

#include <string>

#include "calque/base/error.h"

namespace calque {

ByteTrie::Edge& ByteTrie::edge(uint32_t key) {
  size_t at = place(key);
  while (edges_[at].key != key && edges_[at].key != none) at = (at + 1) & mask();
  return edges_[at];
}

void ByteTrie::grow() {
  std::vector<Edge> old(edges_.empty() ? 256 : edges_.size() * 2);
  old.swap(edges_);
  for (const Edge& e : old)
    if (e.key != none) edge(e.key) = e;
}

void ByteTrie::insert(std::string_view string, uint32_t value) {
  if (string.empty()) return;
  Edge* last = nullptr;
  Node node = root;
  for (const char byte : string) {
    if (values_.size() * 2 >= edges_.size()) grow();
    last = &edge(key_of(node, byte));
    if (last->key == none) {
      if (values_.size() > most_nodes)
        throw UserError(ErrorKind::bad_file, "tokenizer: the vocabulary is too large; expected at most " +
                                                 std::to_string(most_nodes) + " different beginnings of its tokens");
      *last = {key_of(node, byte), static_cast<Node>(values_.size())};
      values_.push_back(0);
    }
    node = last->to;
  }
  if (ends(node)) return;
  last->to |= end_bit;
  values_[last->to & ~end_bit] = value;
}

}  // namespace calque
