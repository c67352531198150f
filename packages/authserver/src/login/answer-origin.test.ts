import { describe, expect, it } from 'vitest'
import type { UpstreamProvider } from '../upstream/upstream-provider.ts'
import { checkAnswerOrigin } from './answer-origin.ts'

const BASE = 'https://mcp.example.com'

function provider(name: string, more: { path?: string; issuer?: string; names?: boolean } = {}): UpstreamProvider {
  const { path = '/oauth/callback', issuer, names = false } = more
  return {
    ...{ provider: name, redirectUri: `${BASE}${path}`, issuer },
    responseIssuer: async () => (names ? issuer : undefined),
  } as unknown as UpstreamProvider
}

const named = provider('named', { issuer: 'https://named.example.com', names: true })
const silent = provider('silent', { issuer: 'https://silent.example.com' })
const plain = provider('plain', { path: '/oauth/callback/plain' })
const other = provider('other', { path: '/oauth/callback/other' })
const shared = provider('shared')
const short = provider('short', { path: '/callback' })

/* RFC 9700 §4.4: an attacker who is one of the providers sends the user on to another one, whose code it would get. */
describe('the answer of a provider', () => {
  it.each<[string, UpstreamProvider, { path?: string; iss?: string | null }, UpstreamProvider[]]>([
    ['that names itself', named, { iss: 'https://named.example.com' }, [named, silent, shared]],
    ['that does not name itself, at its own redirect URI', plain, { path: '/oauth/callback/plain' }, [named, plain, other]],
    ['that does not name itself, with a redirect URI that only providers share that do', silent, {}, [named, silent, plain]],
    ['that is the only one', silent, {}, [silent]],
    [
      'with an issuer that no provider announced',
      plain,
      { path: '/oauth/callback/plain', iss: 'https://plain.example.com' },
      [named, plain],
    ],
    ['whose path lost its beginning at a gateway', provider('far', { path: '/gw/oauth/callback' }), {}, [named]],
    ['whose path got a beginning at a gateway', silent, { path: '/gw/oauth/callback' }, [named, silent]],
    ['at its own redirect URI, of which that of another one is the end', silent, {}, [silent, short]],
    ['at its own redirect URI, which is the end of that of another one', short, { path: '/callback' }, [silent, short]],
  ])('is accepted: one %s', async (_, upstream, { path = '/oauth/callback', iss = null }, all) => {
    await expect(checkAnswerOrigin(upstream, { path, iss }, all)).resolves.toBeUndefined()
  })

  it.each<[string, UpstreamProvider, { path?: string; iss?: string | null }, UpstreamProvider[], string]>([
    ['RFC 9207 §2.4: no issuer where one is promised', named, {}, [named], 'iss_mismatch'],
    ['RFC 9207 §2.4: the issuer of another one', named, { iss: 'https://silent.example.com' }, [named, silent], 'iss_mismatch'],
    ['RFC 9207 §2.4: an issuer that differs by a slash', named, { iss: 'https://named.example.com/' }, [named], 'iss_mismatch'],
    [
      'of one that does not name itself, with the issuer of another',
      silent,
      { iss: 'https://named.example.com' },
      [named, silent],
      'iss_mismatch',
    ],
    ['of one without an issuer, with the issuer of another', shared, { iss: 'https://named.example.com' }, [named, shared], 'iss_mismatch'],
    ['at the redirect URI of another one', plain, { path: '/oauth/callback/other' }, [plain, other], 'redirect_uri_of_another_provider'],
    ['at the shared redirect URI instead of its own', plain, {}, [named, plain], 'redirect_uri_of_another_provider'],
    [
      'at the own one instead of the shared one',
      silent,
      { path: '/oauth/callback/plain' },
      [silent, plain],
      'redirect_uri_of_another_provider',
    ],
    ['at the redirect URI of another one, of which its own is the end', short, {}, [silent, short], 'without_iss'],
    ['at the redirect URI of another one, which is the end of its own', silent, { path: '/callback' }, [silent, short], 'without_iss'],
    [
      'at a path that could be that of two, of which neither names itself',
      provider('one', { path: '/a/callback' }),
      { path: '/callback' },
      [provider('two', { path: '/b/callback' })],
      'answer_without_iss_at_a_shared_redirect_uri',
    ],
    [
      'with an issuer that no provider announced, where two without one share a redirect URI',
      shared,
      { iss: 'https://other.example.com' },
      [shared, provider('more')],
      'answer_without_iss_at_a_shared_redirect_uri',
    ],
    ['that two share of which neither names itself', silent, {}, [silent, shared], 'answer_without_iss_at_a_shared_redirect_uri'],
  ])('is refused: %s', async (_, upstream, { path = '/oauth/callback', iss = null }, all, reason) => {
    await expect(checkAnswerOrigin(upstream, { path, iss }, all)).rejects.toThrow(reason)
  })

  it('is refused where another provider at the same redirect URI cannot be asked whether it names itself', async () => {
    const down = { ...named, responseIssuer: async () => Promise.reject(new Error('down')) } as unknown as UpstreamProvider
    await expect(checkAnswerOrigin(silent, { path: '/oauth/callback', iss: null }, [silent, down])).rejects.toThrow('without_iss')
  })
})
