import type { SearchDocument } from './search-document.ts'

/** Exact filters of a search. */
export const filterKinds = ['tag', 'registryType', 'transport', 'status', 'tool'] as const
export type FilterKind = (typeof filterKinds)[number]

/** A document passes if it has any value of each kind that is given; an empty list is the same as none. */
export type SearchFilters = { readonly [Kind in FilterKind]?: readonly string[] | undefined }

/** With this many values of each kind, a query looks at no more than so many times the documents. */
export const MAX_FILTER_VALUES = 16
/** Longer values are not in the index. */
export const MAX_FILTER_LENGTH = 256

/** Before all words, and beyond the reach of any: no word of a query has it. */
export const EXACT = '\0'
/** Where the words begin among the terms. */
export const FIRST_WORD = '\u0001'

export function exactTerm(kind: FilterKind, value: string): string {
  return `${EXACT}${kind}:${value}`
}

export function exactTermsOf(document: SearchDocument): string[] {
  const values: Record<FilterKind, readonly string[]> = {
    tag: document.tags,
    registryType: document.registryTypes,
    transport: document.transports,
    status: [document.status],
    tool: document.tools,
  }
  return filterKinds.flatMap((kind) =>
    values[kind].filter((value) => value.length <= MAX_FILTER_LENGTH).map((value) => exactTerm(kind, value.toWellFormed())),
  )
}

/** The kinds that say something, each with its different values. */
export function givenFilters(filters: SearchFilters | undefined): (readonly [kind: FilterKind, values: ReadonlySet<string>])[] {
  return filterKinds.flatMap((kind) => {
    const values = new Set(filters?.[kind])
    if (values.size > MAX_FILTER_VALUES) throw new RangeError(`more than ${MAX_FILTER_VALUES} values of ${kind}`)
    return values.size === 0 ? [] : [[kind, values] as const]
  })
}
