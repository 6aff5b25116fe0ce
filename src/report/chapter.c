/* Reading `paper:`, and the list of chapters (chapter.h). Texts may have formulas between dollars (mathml.h). */
#include "report/chapter.h"

#include "report/mathml.h"
#include "study/claim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- check ---------------------------------------------------------------------------------- */

static void check_prose(fini_ask *ask, const fini_node *map, const char *key)
{
    const fini_node *node = fini_node_get(map, key);
    fini_page page = {NULL, 0, 0, false};
    const char *text = fini_ask_text(ask, map, key, "");
    if (!ask->status && !fini_prose(&page, text))
        FINI_ASK_FAIL(
            ask, node,
            "a formula between dollars cannot be read; it may have letters, numbers, _, ^, \\frac, "
            "\\sqrt, \\hat, \\text and names such as \\lambda and \\sum");
    fini_page_close(&page);
}

/* The children of a list, which need not be there; each is `kind`. */
static const fini_node *list_of(fini_ask *ask, const fini_node *map, const char *key,
                                fini_kind kind)
{
    static const fini_node none = {.kind = FINI_LIST};
    const fini_node *list = fini_node_get(map, key);
    bool fine = !list || list->kind == FINI_LIST;
    for (int i = 0; list && fine && i < list->count; i++)
        fine = list->child[i].kind == kind;
    if (!fine)
        FINI_ASK_FAIL(ask, list, "'%s' must be a list of %s", key,
                      kind == FINI_TEXT ? "texts" : "maps");
    return list && fine ? list : &none;
}

/* 2410.01537 and nothing else: it becomes part of an address. */
static bool is_arxiv(const char *text)
{
    size_t front = strspn(text, "0123456789"), back;
    if (front != 4 || text[4] != '.')
        return false;
    back = strspn(text + 5, "0123456789");
    return (back == 4 || back == 5) && text[5 + back] == '\0';
}

static bool is_anchor(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length < 64 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static const char *const keys[] = {"id",   "order",    "title",   "by",    "arxiv",
                                   "lead", "question", "formula", "found", "corrected",
                                   "try",  "claims",   "figures", NULL};

static void check_ids(fini_ask *ask, const fin_study *study, const fini_node *list, bool claims)
{
    for (int i = 0; i < list->count && !ask->status; i++) {
        const char *id = list->child[i].text, *near;
        bool found = !claims && fini_study_figure(study, id, &near);
        for (int k = 0; claims && k < study->claim_count && !found; k++)
            found = strcmp(study->claims[k].id, id) == 0;
        if (!found)
            FINI_ASK_FAIL(ask, &list->child[i], "the study has no %s '%.64s'",
                          claims ? "claim" : "figure", id);
    }
}

static void check_map(fini_ask *ask, const fin_study *study, const fini_node *map)
{
    static const char *const try_keys[] = {"panel", "text", NULL};
    static const char *const prose[] = {"lead", "question", "found"};
    fini_ask_keys(ask, map, "a paper", keys);
    const char *id = fini_ask_text(ask, map, "id", NULL),
               *arxiv = fini_ask_text(ask, map, "arxiv", "");
    if (!fini_is_id(id))
        FINI_ASK_FAIL(ask, fini_node_get(map, "id"),
                      "the id '%.70s' must have 1 to 64 letters, digits, - or _", id);
    fini_ask_text(ask, map, "title", NULL);
    fini_ask_text(ask, map, "by", "");
    if (arxiv[0] && !is_arxiv(arxiv))
        FINI_ASK_FAIL(ask, fini_node_get(map, "arxiv"),
                      "'arxiv' is a number such as 2410.01537, not '%.40s'", arxiv);
    if (!isfinite(fini_ask_number(ask, map, "order", 0)))
        FINI_ASK_FAIL(ask, fini_node_get(map, "order"), "'order' must be finite");
    for (size_t i = 0; i < sizeof prose / sizeof *prose; i++)
        check_prose(ask, map, prose[i]);
    const fini_node *list = list_of(ask, map, "formula", FINI_TEXT);
    for (int i = 0; i < list->count && !ask->status; i++) {
        fini_page page = {NULL, 0, 0, false};
        if (!fini_mathml(&page, list->child[i].text, true))
            FINI_ASK_FAIL(ask, &list->child[i], "this formula cannot be read");
        fini_page_close(&page);
    }
    list_of(ask, map, "corrected", FINI_TEXT);
    check_ids(ask, study, list_of(ask, map, "claims", FINI_TEXT), true);
    check_ids(ask, study, list_of(ask, map, "figures", FINI_TEXT), false);
    list = list_of(ask, map, "try", FINI_MAP);
    for (int i = 0; i < list->count && !ask->status; i++) {
        fini_ask_keys(ask, &list->child[i], "a panel to try", try_keys);
        if (!is_anchor(fini_ask_text(ask, &list->child[i], "panel", "")))
            FINI_ASK_FAIL(ask, &list->child[i],
                          "'panel' is the anchor of a panel, such as which-token");
        check_prose(ask, &list->child[i], "text");
    }
}

fin_status fini_chapter_check(const fin_study *study, fin_error *err)
{
    fini_ask ask = {study->tree, err, FIN_OK};
    const fini_node *paper = study->paper;
    if (paper && paper->kind == FINI_MAP)
        check_map(&ask, study, paper);
    else if (paper && (paper->kind != FINI_TEXT || !fini_is_id(paper->text)))
        FINI_ASK_FAIL(&ask, paper,
                      "'paper' must be the id of a chapter, or a map that says what it is about");
    return ask.status;
}

/* ---- the list ------------------------------------------------------------------------------- */

fini_chapter *fini_chapter_find(fini_chapters *list, const char *id)
{
    fini_chapter **end = &list->first;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->id, id) == 0)
            return *end;
    fini_chapter *chapter = fini_alloc(sizeof *chapter);
    list->failed = list->failed || !chapter;
    if (!chapter)
        return NULL;
    memset(chapter, 0, sizeof *chapter);
    chapter->order = INFINITY;
    size_t length = strlen(id) < FINI_CHAPTER_ID ? strlen(id) : FINI_CHAPTER_ID - 1;
    memcpy(chapter->id, id, length);
    return *end = chapter;
}

static const char *text_of(const fini_node *map, const char *key)
{
    const fini_node *node = fini_node_get(map, key);
    return node && node->kind == FINI_TEXT ? node->text : "";
}

static void paragraph(fini_page *page, const char *open, const char *text, const char *close)
{
    if (!text[0])
        return;
    fini_page_add(page, open);
    fini_prose(page, text);
    fini_page_add(page, close);
}

/* Has the page a panel of this name? */
static bool has_panel(const char *explore, const char *panel)
{
    char id[80];
    snprintf(id, sizeof id, "id=\"%.64s\"", panel);
    return explore && strstr(explore, id);
}

/* A map that was checked. */
static void tell(fini_chapter *chapter, const fini_node *map, const char *explore)
{
    static const fini_node none = {.kind = FINI_LIST};
    const fini_node *lists[3];
    const char *names[] = {"formula", "corrected", "try"}, *arxiv = text_of(map, "arxiv");
    for (int i = 0; i < 3; i++)
        lists[i] = fini_node_get(map, names[i]) ? fini_node_get(map, names[i]) : &none;
    chapter->order = 0;
    fini_read_number(text_of(map, "order"), &chapter->order);
    fini_page_add(&chapter->title, text_of(map, "title"));
    paragraph(&chapter->lead, "", text_of(map, "lead"), " ");
    fini_page_xml(&chapter->by, text_of(map, "by"));
    if (text_of(map, "by")[0] || arxiv[0])
        fini_page_form(&chapter->intro, "<p class=\"source\">%s%-s", text_of(map, "by"),
                       text_of(map, "by")[0] && arxiv[0] ? " \xc2\xb7 " : "");
    if (arxiv[0])
        fini_page_form(&chapter->intro, "<a href=\"https://arxiv.org/abs/%s\">arXiv %s</a>", arxiv,
                       arxiv);
    if (text_of(map, "by")[0] || arxiv[0])
        fini_page_add(&chapter->intro, "</p>\n");
    paragraph(&chapter->intro, "<p class=\"question\">", text_of(map, "question"), "</p>\n");
    for (int i = 0; i < lists[0]->count; i++) {
        fini_page_add(&chapter->intro, "<div class=\"formula\">");
        fini_mathml(&chapter->intro, lists[0]->child[i].text, true);
        fini_page_add(&chapter->intro, "</div>\n");
    }
    paragraph(&chapter->found, "<p class=\"found\">", text_of(map, "found"), "</p>\n");
    for (int i = 0; i < lists[1]->count; i++)
        fini_page_form(&chapter->corrected, "<li>%s</li>\n", lists[1]->child[i].text);
    for (int i = 0; i < lists[2]->count; i++) {
        if (!has_panel(explore, text_of(&lists[2]->child[i], "panel")))
            continue;
        fini_page_form(&chapter->tries, "<li><a href=\"explore.html#%s\">",
                       text_of(&lists[2]->child[i], "panel"));
        fini_prose(&chapter->tries, text_of(&lists[2]->child[i], "text"));
        fini_page_add(&chapter->tries, "</a></li>\n");
    }
}

fini_chapter *fini_chapter_of(fini_chapters *list, const fin_study *study)
{
    const fini_node *paper = study && !fini_chapter_check(study, NULL) ? study->paper : NULL;
    bool map = paper && paper->kind == FINI_MAP;
    fini_chapter *chapter = fini_chapter_find(list, map     ? text_of(paper, "id")
                                                    : paper ? paper->text
                                                            : "");
    if (chapter && map && isinf(chapter->order))
        tell(chapter, paper, list->explore);
    return chapter;
}

static bool lists(const fini_node *paper, const char *which, const char *id)
{
    const fini_node *list = paper && paper->kind == FINI_MAP ? fini_node_get(paper, which) : NULL;
    for (int i = 0; list && list->kind == FINI_LIST && i < list->count; i++)
        if (list->child[i].kind == FINI_TEXT && strcmp(list->child[i].text, id) == 0)
            return true;
    return false;
}

fini_chapter *fini_chapter_key(fini_chapters *list, const fin_study *study, const char *which,
                               const char *id, const char *key)
{
    if (study && lists(study->paper, which, id))
        return fini_chapter_of(list, study);
    if (!study || !key[0])
        return NULL;
    if (strcmp(key, "true") != 0)
        return fini_is_id(key) ? fini_chapter_find(list, key) : NULL;
    return fini_chapter_of(list, study);
}

void fini_chapters_sort(fini_chapters *list)
{
    fini_chapter *sorted = NULL;
    while (list->first) {
        fini_chapter *one = list->first, **at = &sorted;
        list->first = one->next;
        while (*at && ((*at)->order <= one->order))
            at = &(*at)->next;
        one->next = *at;
        *at = one;
    }
    list->first = sorted;
}

enum { PAGES = 11 };
static void pages_of(fini_chapter *chapter, fini_page *pages[PAGES])
{
    fini_page *all[PAGES] = {&chapter->title,   &chapter->lead,     &chapter->intro,
                             &chapter->figures, &chapter->found,    &chapter->claims,
                             &chapter->failed,  &chapter->tries,    &chapter->studies,
                             &chapter->by,      &chapter->corrected};
    memcpy(pages, all, sizeof all);
}

void fini_chapters_close(fini_chapters *list)
{
    while (list->first) {
        fini_page *pages[PAGES];
        fini_chapter *one = list->first;
        list->first = one->next;
        pages_of(one, pages);
        for (int i = 0; i < PAGES; i++)
            fini_page_close(pages[i]);
        fini_free(one);
    }
}

bool fini_chapters_failed(const fini_chapters *list)
{
    bool failed = list->failed;
    for (fini_chapter *one = list->first; one; one = one->next) {
        fini_page *pages[PAGES];
        pages_of(one, pages);
        for (int i = 0; i < PAGES; i++)
            failed = failed || pages[i]->failed;
    }
    return failed;
}
