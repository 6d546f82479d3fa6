# The plain comments of a header as Doxygen reads them (tools/reference.sh). Pages of text go through as they are.
FILENAME ~ /\.md$/ { print; next }

# The parameter that remembers the line of the call is nobody's to give.
function without_line(text) {
  gsub(/(, )?std::source_location where = std::source_location::current\(\)/, "", text)
  return text
}

# `// ---- views ----` parts a header for who reads it; it documents nothing.
/^ *\/\/ -----*/ { print ""; next }

# A comment of its own: of the header, when nothing but comments came before it; else of what follows.
/^ *\/\// {
  text = $0
  sub(/^ *\/\/ ?/, "", text)
  if (text ~ /^   */) {
    sub(/^ */, "    ", text)         # what is indented is code, and stays so for Markdown
  } else {
    gsub(/[@\\]/, "\\\\&", text)  # no commands of Doxygen, no tags of HTML
    gsub(/</, "\\&lt;", text)
  }
  if (!begun && !opened) { print "/// \\file"; opened = 1 }
  if (text ~ /^    / && !code) print "///"
  if (text !~ /^    / && code) print "///"
  code = text ~ /^    /
  print "/// " text
  next
}

# Tensor's methods, which are made from the operators' stanzas.
/^#include "calque\/op\/tensor_methods.inc"/ {
  while ((getline < "build/release/generated/include/calque/op/tensor_methods.inc") > 0) if (!/^\/\//) print without_line($0)
  next
}

# Code. A comment behind a member belongs to it.
{
  code = 0
  $0 = without_line($0)
  if ($0 !~ /^ *$/) begun = 1
  at = index($0, "  // ")
  if (at && substr($0, 1, at) ~ /[;,{]$|[;,] *$/ && substr($0, 1, at) !~ /[{] *$/) print substr($0, 1, at - 1) "  ///< " substr($0, at + 5)
  else print
}
