/* Replies that send the rows of a store query as one JSON document, and the page cursors with which clients request one page
 * after another. Handlers call this module in a pool's thread. */
#ifndef RL_API_JSON_ROWS_H
#define RL_API_JSON_ROWS_H

#include "api/http_request.h"
#include "store/store.h"

/* A page cursor is a letter that stands for the list, and the decimal id of the page's last row: "j17". */
enum { RL_PAGE_CURSOR_SIZE = 24 };
void rl_page_cursor_format(char list_letter, int64_t id, char *text); /* writes into text[RL_PAGE_CURSOR_SIZE] */
bool rl_page_cursor_parse(char list_letter, const char *text, int64_t *id);

/* Replies {"items":[...], ...} and closes the cursor, even on failure. Sends at most `limit` rows; the query must return at most
 * limit + 1, and the row beyond the limit only shows that there are more. If list_letter is not 0, adds "next_cursor": the page
 * cursor of the last sent row, whose id is in the second column, or null at the end of the list. If list_letter is 0, adds
 * "truncated": whether there are more rows. If limit is 0, sends all rows and adds neither member. */
int rl_reply_rows(rl_http_request *request, rl_cursor *cursor, int64_t limit, char list_letter, rl_error *err);

#endif
