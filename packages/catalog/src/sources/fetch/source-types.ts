/** Every kind of source there is, by the name of its block. */
export const sourceTypes = ['git', 'api', 'file', 'kubernetes', 'managed'] as const
export type SourceType = (typeof sourceTypes)[number]
