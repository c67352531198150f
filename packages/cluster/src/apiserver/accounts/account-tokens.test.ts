import { createHmac, generateKeyPairSync } from 'node:crypto'
import { TestClock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { type Answer, request } from '@thv/testkit/cluster/http-request'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from '../api-server.ts'
import { AccountTokens, ISSUER } from './account-tokens.ts'
import { createTokenKey } from './token-key.ts'

const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts'
const PODS = '/api/v1/namespaces/default/pods'
const pod = (name: string) => ({
  metadata: { name },
  spec: { serviceAccountName: 'robot', nodeName: 'here', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] },
})

describe('tokens of ServiceAccounts', () => {
  const errors: unknown[] = []
  let clock: TestClock
  let server: EmbeddedApiServer

  beforeEach(async () => {
    clock = new TestClock(Date.now())
    server = await startApiServer({ clock, onError: (error) => errors.push(error) })
    await call(ACCOUNTS, { method: 'POST', body: { metadata: { name: 'robot' } } })
  })
  afterEach(async () => {
    await server.close()
    expect(errors.splice(0)).toEqual([])
  })

  function call(path: string, options: { method?: string; body?: unknown; token?: string } = {}): Promise<Answer> {
    const { token = server.adminToken, ...rest } = options
    return request(`${server.url}${path}`, { ...rest, caPem: server.caPem, headers: { authorization: `Bearer ${token}` } })
  }
  const ask = (spec: object = {}, account = 'robot') =>
    call(`${ACCOUNTS}/${account}/token`, { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec } })
  const mint = async (spec: object = {}) => (await ask(spec)).json<{ status: { token: string } }>().status.token
  const statusWith = async (token: string) => (await call('/api/v1/namespaces', { token })).status
  const uidOf = async (path: string) => (await call(path)).json<{ metadata: { uid: string } }>().metadata.uid

  it('are answered as by the real server', async () => {
    const answer = (await ask({ expirationSeconds: 700 })).json<{ status: { token: string; expirationTimestamp: string } }>()
    const uid = await uidOf(`${ACCOUNTS}/robot`)
    const now = Math.floor(clock.now() / 1_000)
    expect(answer).toEqual({
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name: 'robot', namespace: 'default', uid, creationTimestamp: expect.any(String), managedFields: expect.any(Array) },
      spec: { audiences: ['https://kubernetes.default.svc.cluster.local'], expirationSeconds: 700, boundObjectRef: null },
      status: { token: expect.any(String), expirationTimestamp: new Date((now + 700) * 1_000).toISOString().replace('.000', '') },
    })
    expect(headerOf(answer.status.token)).toEqual({ alg: 'ES256', kid: expect.stringMatching(/^[\w-]{43}$/) })
    expect(claimsOf(answer.status.token)).toEqual({
      aud: ['https://kubernetes.default.svc.cluster.local'],
      exp: now + 700,
      iat: now,
      iss: 'https://kubernetes.default.svc.cluster.local',
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'robot', uid } },
      nbf: now,
      sub: 'system:serviceaccount:default:robot',
    })
    expect(await statusWith(answer.status.token)).toBe(200)
  })

  it('say whom they stand for', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const review = async (token: string) => (await call(path, { method: 'POST', body: {}, token })).json()
    expect(await review(await mint())).toEqual({
      kind: 'SelfSubjectReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { creationTimestamp: expect.stringMatching(/^[^.]+Z$/) },
      status: {
        userInfo: {
          username: 'system:serviceaccount:default:robot',
          uid: await uidOf(`${ACCOUNTS}/robot`),
          groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
        },
      },
    })
    expect((await call(path)).status).toBe(405)
    expect((await call(path, { method: 'POST', token: 'nobody-knows-this-token' })).status).toBe(401)
  })

  it('stand for the account and its groups', () => {
    const account = server.store.get('serviceaccounts', 'default/robot')
    if (account === undefined) throw new Error('no account')
    const tokens = new AccountTokens(ownKey(), server.store, clock)
    const { token } = tokens.mint({ account, audiences: [ISSUER], seconds: 600 })
    expect(tokens.userOf(token)).toEqual({
      name: 'system:serviceaccount:default:robot',
      uid: (account.body['metadata'] as JsonObject)['uid'],
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
    })
  })

  it.each([
    [{ expirationSeconds: 599 }, 422, 'spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes'],
    [{ expirationSeconds: 2 ** 32 + 1 }, 422, 'may not specify a duration larger than 2^32 seconds'],
    [{ audiences: 'x' }, 400, 'json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.audiences of type []string'],
    [
      { expirationSeconds: 'x' },
      400,
      'json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64',
    ],
    [{ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'none' } }, 404, 'pods "none" not found'],
    [{ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'none' } }, 404, 'secrets "none" not found'],
    [{ boundObjectRef: { kind: 'Pod', apiVersion: 'v1' } }, 400, 'Name parameter required.'],
    [
      { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'x' } },
      400,
      'cannot bind token to object of type /v1, Kind=ConfigMap',
    ],
  ])('are refused for %j', async (spec, status, message) => {
    const answer = await ask(spec)
    expect([answer.status, answer.json()['message']]).toEqual([status, expect.stringContaining(message)])
  })

  it('are for accounts that exist, under their own names', async () => {
    const missing = await ask({}, 'nobody')
    expect([missing.status, missing.json()['message']]).toEqual([404, 'serviceaccounts "nobody" not found'])
    const elsewhere = await call('/api/v1/namespaces/none/serviceaccounts/robot/token', { method: 'POST', body: {} })
    expect([elsewhere.status, elsewhere.json()['message']]).toEqual([404, 'namespaces "none" not found'])
    const renamed = await call(`${ACCOUNTS}/robot/token`, { method: 'POST', body: { metadata: { name: 'other' } } })
    expect([renamed.status, renamed.json()['reason']]).toEqual([422, 'Invalid'])
    const moved = await call(`${ACCOUNTS}/robot/token`, { method: 'POST', body: { metadata: { namespace: 'other' } } })
    expect(moved.status).toBe(400)
    const wrong = await call(`${ACCOUNTS}/robot/token`, { method: 'POST', body: { kind: 'ConfigMap', apiVersion: 'v1' } })
    expect(wrong.json()['message']).toBe(
      'ConfigMap in version "v1" cannot be handled as a TokenRequest: converting (v1.ConfigMap) to (authentication.TokenRequest): unknown conversion',
    )
    expect((await call(`${ACCOUNTS}/robot/token`)).status).toBe(405)
    const unknown = await call(`${ACCOUNTS}/robot/token?fieldValidation=Strict`, { method: 'POST', body: { spec: { x: 1 } } })
    expect(unknown.json()['message']).toContain('strict decoding error: unknown field "spec.x"')
  })

  it('end with their time', async () => {
    const token = await mint({ expirationSeconds: 600 })
    await clock.advance(599_000)
    expect(await statusWith(token)).toBe(200)
    // The real server gives clocks that differ a minute.
    await clock.advance(61_000)
    expect(await statusWith(token)).toBe(200)
    await clock.advance(1_000)
    expect(await statusWith(token)).toBe(401)
  })

  it('end with their account, and do not come back with another of the same name', async () => {
    const token = await mint()
    await call(`${ACCOUNTS}/robot`, { method: 'DELETE' })
    expect(await statusWith(token)).toBe(401)
    await call(ACCOUNTS, { method: 'POST', body: { metadata: { name: 'robot' } } })
    expect(await statusWith(token)).toBe(401)
    expect(await statusWith(await mint())).toBe(200)
  })

  it('end with the pod they are bound to', async () => {
    expect((await call(PODS, { method: 'POST', body: pod('p') })).status).toBe(201)
    const uid = await uidOf(`${PODS}/p`)
    const reference = { kind: 'Pod', apiVersion: 'v1', name: 'p' }
    const token = await mint({ boundObjectRef: { ...reference, uid } })
    expect(claimsOf(token)['kubernetes.io']).toMatchObject({ pod: { name: 'p', uid }, node: { name: 'here' } })
    const stale = await ask({ boundObjectRef: { ...reference, uid: 'older' } })
    expect([stale.status, stale.json()['reason']]).toEqual([409, 'Conflict'])
    await call(ACCOUNTS, { method: 'POST', body: { metadata: { name: 'other' } } })
    const foreign = await ask({ boundObjectRef: reference }, 'other')
    expect([foreign.status, foreign.json()['message']]).toEqual([
      400,
      'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
    ])
    expect(await statusWith(token)).toBe(200)
    await call(`${PODS}/p?gracePeriodSeconds=0`, { method: 'DELETE' })
    expect(await statusWith(token)).toBe(401)
    await call(PODS, { method: 'POST', body: pod('p') })
    expect(await statusWith(token)).toBe(401)
  })

  it('are good for the audience they are made for only', async () => {
    expect(await statusWith(await mint({ audiences: ['elsewhere'] }))).toBe(401)
    expect(await statusWith(await mint({ audiences: ['elsewhere', ISSUER] }))).toBe(200)
  })

  it('cannot be forged', async () => {
    const token = await mint()
    const [head = '', body = '', signature = ''] = token.split('.')
    const changed = encode({ ...claimsOf(token), exp: 9_999_999_999 })
    const foreign = ownKey().sign(claimsOf(token))
    const header = headerOf(token)
    const jwk = (await call('/openid/v1/jwks')).json<{ keys: { x: string }[] }>().keys[0]
    const hs256 = `${encode({ alg: 'HS256', kid: header['kid'] ?? '' })}.${body}`
    const forged = [
      `${head}.${changed}.${signature}`,
      `${encode({ alg: 'none' })}.${body}.`,
      `${encode({ alg: 'none', kid: header['kid'] ?? '' })}.${body}.${signature}`,
      `${hs256}.${createHmac('sha256', jwk?.x ?? '')
        .update(hs256)
        .digest('base64url')}`,
      foreign,
      `${head}.${foreign.split('.').slice(1).join('.')}`,
      `${encode({ ...header, kid: 'other' })}.${body}.${signature}`,
      `${encode({ alg: 'ES256' })}.${body}.${signature}`,
      `${encode({ ...header, crit: ['x'] })}.${body}.${signature}`,
      token.slice(0, -1),
      token.slice(0, -20),
      `${head}.${body}`,
      `${head}.${body}.`,
      `${token}.x`,
      `${token}=`,
      `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
      `${head}.${'A'.repeat(9_000)}.${signature}`,
      '..',
    ]
    expect(await Promise.all(forged.map(statusWith))).toEqual(forged.map(() => 401))
    expect(await statusWith(token)).toBe(200)
  })

  it('can be checked by others', async () => {
    const token = await mint()
    const configuration = (await call('/.well-known/openid-configuration')).json()
    expect(configuration).toEqual({
      issuer: 'https://kubernetes.default.svc.cluster.local',
      jwks_uri: `${server.url}/openid/v1/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    })
    const { keys } = (await call('/openid/v1/jwks')).json<{ keys: JsonObject[] }>()
    expect(keys).toHaveLength(1)
    const key = await crypto.subtle.importKey('jwk', keys[0] ?? {}, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['verify'])
    const at = token.lastIndexOf('.')
    const signature = Buffer.from(token.slice(at + 1), 'base64url')
    expect(await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, signature, Buffer.from(token.slice(0, at)))).toBe(true)
    expect(keys[0]).toMatchObject({ kid: headerOf(token)['kid'], use: 'sig', alg: 'ES256' })
  })
})

function ownKey() {
  return createTokenKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function headerOf(token: string): JsonObject {
  return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as JsonObject
}

function claimsOf(token: string): JsonObject {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JsonObject
}
