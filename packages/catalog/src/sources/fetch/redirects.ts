import { ThvError } from '@thv/kernel/errors'

export const MAX_REDIRECTS = 5

const STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

export function isRedirect(status: number): boolean {
  return STATUSES.has(status)
}

/** Where a source may be sent on to. `place` is the redirecting server, for messages; they show nothing of the address but its scheme. */
export function redirected(from: URL, location: string, place: string): URL {
  const to = URL.parse(location, from)
  if (to === null) throw new ThvError('source_failed', `${place} redirects to what is no URL`)
  if (to.protocol !== 'http:' && to.protocol !== 'https:')
    throw new ThvError('source_blocked', `${place} redirects to the scheme ${to.protocol.slice(0, -1)}, which is not allowed`)
  if (from.protocol === 'https:' && to.protocol === 'http:') throw new ThvError('source_blocked', `${place} redirects from https to http`)
  if (to.username !== '' || to.password !== '') throw new ThvError('source_blocked', `${place} redirects to an address with a user name`)
  return to
}
