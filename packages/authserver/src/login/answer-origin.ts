import type { UpstreamProvider } from '../upstream/upstream-provider.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'

export interface UpstreamAnswer {
  /** Path that the answer came to, at this server. */
  readonly path: string
  /** Of RFC 9207. */
  readonly iss: string | null
}

/**
 * Rejects with `UpstreamRefused` unless the answer is that of the provider where the user was sent. A provider that passes users on to another one
 * would otherwise be given the code of that one (RFC 9700 §4.4).
 */
export async function checkAnswerOrigin(
  upstream: UpstreamProvider,
  { path, iss }: UpstreamAnswer,
  upstreams: Iterable<UpstreamProvider>,
): Promise<void> {
  if (!mayAnswerAt(upstream, path)) throw new UpstreamRefused('redirect_uri_of_another_provider')
  const expected = await upstream.responseIssuer()
  if (expected !== undefined) {
    if (iss !== expected) throw new UpstreamRefused('iss_mismatch')
    return
  }
  const others = [...upstreams].filter((other) => other !== upstream)
  if (iss !== null) {
    if (upstream.issuer !== undefined && !isSame(iss, upstream.issuer)) throw new UpstreamRefused('iss_mismatch')
    if (others.some(({ issuer }) => issuer !== undefined && isSame(iss, issuer))) throw new UpstreamRefused('iss_mismatch')
    if (upstream.issuer !== undefined) return
  }
  const isOwn = pathOf(upstream) === path
  for (const other of others) {
    if (isOwn ? pathOf(other) !== path : !mayAnswerAt(other, path)) continue
    if (iss !== null && other.issuer !== undefined) continue // it would have named itself
    const named = await other.responseIssuer().catch(() => undefined)
    if (named === undefined) throw new UpstreamRefused('answer_without_iss_at_a_shared_redirect_uri')
  }
}

/** A gateway may have changed the beginning of the path. */
function mayAnswerAt(upstream: UpstreamProvider, path: string): boolean {
  const own = pathOf(upstream)
  return own.endsWith(path) || path.endsWith(own)
}

function pathOf({ redirectUri }: UpstreamProvider): string {
  return new URL(redirectUri).pathname
}

function isSame(a: string, b: string): boolean {
  return a.replace(/\/$/, '') === b.replace(/\/$/, '')
}
