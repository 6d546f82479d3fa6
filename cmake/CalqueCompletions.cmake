# What shells and `man` know of the program, made by the program itself from its options: there is no second list to keep.

if(TARGET calque_cli AND NOT CMAKE_CROSSCOMPILING)
  set(made "${PROJECT_BINARY_DIR}/completions")
  file(MAKE_DIRECTORY "${made}")
  foreach(pair IN ITEMS bash:calque.bash zsh:_calque fish:calque.fish man:calque.1)
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 shell)
    list(GET pair 1 name)
    # With the program, so that whoever builds the program alone can install it.
    add_custom_command(TARGET calque_cli POST_BUILD
      COMMAND calque_cli completions ${shell} > "${made}/${name}" VERBATIM)
  endforeach()
  install(FILES "${made}/calque.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME calque)
  install(FILES "${made}/_calque" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${made}/calque.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  install(FILES "${made}/calque.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()
