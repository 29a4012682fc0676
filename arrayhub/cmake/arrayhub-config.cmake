# find_package(arrayhub CONFIG) defines the target arrayhub::arrayhub, which consists of headers only.
if(NOT TARGET arrayhub::arrayhub)
  get_filename_component(arrayhub_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
  add_library(arrayhub::arrayhub INTERFACE IMPORTED)
  set_target_properties(arrayhub::arrayhub PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${arrayhub_INCLUDE_DIR}")
endif()
