# Writes OUTPUT, a C file with the array SYMBOL of the FILES' names and bytes (base/embedded.h).

set(arrays "")
set(rows "")
set(i 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR size "${length} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  # A NUL behind each, so that text is text.
  string(APPEND arrays "static const unsigned char file_${i}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${i}, ${size}},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"base/embedded.h\"\n\n${arrays}\nconst fini_file ${SYMBOL}[] = {\n${rows}    {0, 0, 0},\n};\n")
