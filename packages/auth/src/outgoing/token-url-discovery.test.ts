import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { TestClock } from '@thv/kernel/clock'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterEach, describe, expect, it } from 'vitest'
import { sendJson } from './testing/token-server.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import { createTokenUrlDiscovery } from './token-url-discovery.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

function discovery(issuer: string, clock = new TestClock()) {
  const outbound = createOutbound()
  open.push(outbound)
  const shared = { outbound, clock, signal: new AbortController().signal }
  return { ...shared, find: createTokenUrlDiscovery({ issuer, ...shared }) }
}

describe('the token endpoint of an issuer', () => {
  it('is found at a real provider, which issues a token there', async () => {
    const provider = await startOidcServer()
    open.push(provider)
    const { find, ...shared } = discovery(provider.issuer)
    expect(await find()).toBe(`${provider.issuer}${OIDC_PATHS.token}`)
    const client = { id: provider.clientId, secret: () => provider.clientSecret }
    const endpoint = createTokenEndpoint({ ...shared, url: find, client })
    const form = new URLSearchParams({ grant_type: 'client_credentials', resource: 'urn:thv:tests' })
    const { token, expiresInMs } = await endpoint.request(form, { isExchange: false })
    expect(token.split('.')).toHaveLength(3)
    expect(expiresInMs).toBe(600_000)
    expect(provider.hits(OIDC_PATHS.discovery)).toBe(1)
  })

  it('is asked for again after an hour', async () => {
    const provider = await startOidcServer()
    open.push(provider)
    const { find, clock } = discovery(provider.issuer)
    await Promise.all([find(), find()])
    await clock.advance(3_600_000)
    await find()
    expect(provider.hits(OIDC_PATHS.discovery)).toBe(2)
  })

  it('is not taken from a document of another issuer', async () => {
    const provider = await startOidcServer()
    open.push(provider)
    provider.fault = 'wrong-issuer'
    await expect(discovery(provider.issuer).find()).rejects.toMatchObject({ kind: 'unavailable' })
  })

  it.each([
    ['is missing', undefined],
    ['is no URL', 'token'],
  ])('%s in the document: discovery fails', async (_, endpoint) => {
    const backend = await startBackend((_request, response) => sendJson(response, 200, { issuer: backend.url, token_endpoint: endpoint }))
    open.push(backend)
    await expect(discovery(backend.url).find()).rejects.toMatchObject({ kind: 'unavailable' })
  })
})
