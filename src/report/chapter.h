/* Chapters of a report: studies that belong to one paper or one subject are told together. What a chapter says is data,
 * `paper:` of a study file:
 *
 *     paper: marion                  the study belongs to this chapter
 *     paper: {id: marion, ...}       and says what it is about; one study of a chapter does
 *
 * and `key: true` of a claim or a figure puts it into the chapter's story (`key: zhang` into that of another); members of a family
 * are listed by their ids, `claims: [...]` and `figures: [...]` of the map. */
#ifndef FINI_CHAPTER_H
#define FINI_CHAPTER_H

#include "report/page.h"
#include "study/study.h"

enum { FINI_CHAPTER_ID = 65 };

typedef struct fini_chapter fini_chapter;
struct fini_chapter {
    fini_chapter *next;
    char id[FINI_CHAPTER_ID]; /* "": studies that belong to none */
    double order;             /* infinite: no study says what it is about */
    fini_page title, lead;    /* plain; a sentence for the top of the page */
    fini_page by;             /* whose work it is */
    fini_page intro;          /* who wrote it, the question, formulas */
    fini_page figures;        /* the key ones */
    fini_page found, claims;  /* an answer in words; key claims as items of a list */
    fini_page failed;         /* the same of what does not hold */
    fini_page corrected;      /* what is to be known beside it */
    fini_page tries;          /* panels of the page to play with */
    fini_page studies;        /* all that was run, study by study */
};

typedef struct fini_chapters {
    fini_chapter *first;
    bool failed; /* no memory for one */
    const char *
        explore; /* the page to play with that stands beside the report: panels it has are linked; NULL: none */
} fini_chapters;

/* Is `paper:` of the study well formed? */
fin_status fini_chapter_check(const fin_study *study, fin_error *err);
/* The chapter of this id in the list, made if it is not there; NULL: no memory. */
fini_chapter *fini_chapter_find(fini_chapters *list, const char *id);
/* That of a study, after writing what it says of it; study NULL: that of studies without. */
fini_chapter *fini_chapter_of(fini_chapters *list, const fin_study *study);
/* That the `key` of a claim or a figure names, or that of the study if its `paper:` lists the id under `which` ("claims", "figures");
 * NULL: it is not key, or no memory. */
fini_chapter *fini_chapter_key(fini_chapters *list, const fin_study *study, const char *which,
                               const char *id, const char *key);
/* Ascending by order, those that are equal as they were. */
void fini_chapters_sort(fini_chapters *list);
void fini_chapters_close(fini_chapters *list);
bool fini_chapters_failed(const fini_chapters *list); /* no memory for a chapter, or for a text */

#endif
