import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OidcServer, startOidcServer } from './oidc-server.ts'
import { TOKEN_EXCHANGE_GRANT } from './token-exchange.ts'

describe('token exchange of the test provider', () => {
  let idp: OidcServer
  beforeAll(async () => {
    idp = await startOidcServer()
  })
  afterAll(() => idp[Symbol.asyncDispose]())

  async function exchange(subjectToken: string, more: Record<string, string> = {}) {
    const answer = await fetch(idp.tokenUrl, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${idp.clientId}:${idp.clientSecret}`).toString('base64')}` },
      body: new URLSearchParams({
        grant_type: TOKEN_EXCHANGE_GRANT,
        subject_token: subjectToken,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        ...more,
      }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const claimsOf = (token: unknown) => JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()) as object

  it('gives a token of the same user for the audience', async () => {
    const subject = await idp.token({ audience: 'here', claims: { sub: 'ada' } })
    const { status, body } = await exchange(subject, { audience: 'there' })
    expect(body).toMatchObject({ issued_token_type: expect.stringContaining('access_token'), token_type: 'Bearer', expires_in: 600 })
    expect([status, claimsOf(body['access_token'])]).toMatchObject([200, { sub: 'ada', aud: 'there', iss: idp.issuer }])
    expect(idp.exchanged.at(-1)).toMatchObject({ subject: 'ada', audience: 'there' })
  })

  it('refuses tokens of others, changed ones, and unknown types', async () => {
    await using other = await startOidcServer()
    const foreign = await other.token({ claims: { sub: 'ada' } })
    const [head, , signature] = (await idp.token({ claims: { sub: 'ada' } })).split('.')
    const forged = `${head}.${Buffer.from(JSON.stringify({ iss: idp.issuer, sub: 'eve', exp: 9e9 })).toString('base64url')}.${signature}`
    for (const token of [foreign, forged, 'nonsense'])
      expect(await exchange(token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const saml = { subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }
    expect(await exchange(await idp.token(), saml)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })
})
