# The plain comments of a header as Doxygen reads them (tools/reference.sh). Pages of text go through as they are.
FILENAME ~ /\.md$/ { print; next }

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

# Code. A comment behind a member belongs to it.
{
  code = 0
  if ($0 !~ /^ *$/) begun = 1
  at = index($0, "  // ")
  if (at && substr($0, 1, at) ~ /[;,{]$|[;,] *$/ && substr($0, 1, at) !~ /[{] *$/) print substr($0, 1, at - 1) "  ///< " substr($0, at + 5)
  else print
}
