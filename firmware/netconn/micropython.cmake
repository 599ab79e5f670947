# cmake ports (rp2): -DUSER_C_MODULES=<this file>
add_library(usermod_netconn INTERFACE)

target_sources(usermod_netconn INTERFACE
    ${CMAKE_CURRENT_LIST_DIR}/netconn.c
    ${CMAKE_CURRENT_LIST_DIR}/nc_tcp.c
    ${CMAKE_CURRENT_LIST_DIR}/nc_udp.c
    ${CMAKE_CURRENT_LIST_DIR}/nc_netbuf.c
)

target_include_directories(usermod_netconn INTERFACE
    ${CMAKE_CURRENT_LIST_DIR}
)

target_link_libraries(usermod INTERFACE usermod_netconn)
