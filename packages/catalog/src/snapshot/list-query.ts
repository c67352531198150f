import { hash } from 'node:crypto'
import { type CursorPlace, decodeCursor } from './cursor.ts'
import { type Instant, parseInstant } from './instant.ts'
import { foldCase } from './snapshot-data.ts'

/** The query of a client, unchecked. An empty string is the same as leaving it out. */
export interface ListQuery {
  readonly cursor?: string | undefined
  /** 1..1000, 30 when left out. */
  readonly limit?: number | undefined
  /** A case-insensitive part of name, title or description. */
  readonly search?: string | undefined
  /** RFC 3339; strictly newer entries, the deleted among them. */
  readonly updatedSince?: string | undefined
  /** `latest` or exactly this one. */
  readonly version?: string | undefined
  readonly includeDeleted?: boolean | undefined
}

/** Why there is no answer: the client's mistake (400), with the parameter it is in. */
export interface QueryProblem {
  readonly parameter: 'cursor' | 'limit' | 'search' | 'updated_since' | 'include_deleted'
  readonly message: string
}

export interface CheckedQuery {
  readonly limit: number
  readonly after: CursorPlace | undefined
  /** Folded UTF-8. */
  readonly needle: Buffer | undefined
  readonly since: Instant | undefined
  readonly version: string | undefined
  readonly withDeleted: boolean
  /** Ties a cursor to the question. */
  readonly filter: string
}

export const DEFAULT_LIMIT = 30
export const MAX_LIMIT = 1000
/** Bounds the work of one search; names, titles and descriptions of the standard are not longer. */
export const MAX_SEARCH_LENGTH = 256

export function checkQuery(query: ListQuery): CheckedQuery | QueryProblem {
  const { limit = DEFAULT_LIMIT, search = '', updatedSince = '', version = '', cursor = '' } = query
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) return problem('limit', `must be an integer from 1 to ${MAX_LIMIT}`)
  if (search.length > MAX_SEARCH_LENGTH) return problem('search', `must not be longer than ${MAX_SEARCH_LENGTH} characters`)
  const since = updatedSince === '' ? undefined : parseInstant(updatedSince)
  if (updatedSince !== '' && !since) return problem('updated_since', 'must be RFC 3339, for example 2025-08-07T13:15:04.280Z')
  if (since && query.includeDeleted === false) return problem('include_deleted', 'cannot be false together with updated_since')

  const folded = foldCase(search)
  const withDeleted = since !== undefined || query.includeDeleted === true
  const isUnfiltered = folded === '' && since === undefined && version === ''
  const filter = isUnfiltered ? unfiltered(withDeleted) : filterHash([folded, since ? [since.ms, since.ns] : null, version, withDeleted])
  const after = cursor === '' ? undefined : decodeCursor(cursor)
  if (cursor !== '' && !after) return problem('cursor', 'is not one that this registry gave')
  if (after && after.filter !== filter) return problem('cursor', 'belongs to a list with other filters')
  return {
    limit,
    after,
    needle: folded === '' ? undefined : Buffer.from(folded),
    since,
    version: version === '' ? undefined : version.toWellFormed(),
    withDeleted,
    filter,
  }
}

export function isProblem<T extends object>(answer: T | QueryProblem): answer is QueryProblem {
  return 'parameter' in answer
}

function problem(parameter: QueryProblem['parameter'], message: string): QueryProblem {
  return { parameter, message: `${parameter} ${message}` }
}

const ALL = filterHash(['', null, '', false])
const ALL_WITH_DELETED = filterHash(['', null, '', true])

/** Known beforehand, for most lists are of everything. */
function unfiltered(withDeleted: boolean): string {
  return withDeleted ? ALL_WITH_DELETED : ALL
}

function filterHash(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 12)
}
