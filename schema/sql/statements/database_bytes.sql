SELECT (pages.page_count - free.freelist_count) * size.page_size
FROM pragma_page_count() AS pages, pragma_freelist_count() AS free, pragma_page_size() AS size
