import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text as readText } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessTo, type PlatformAccess } from './fixture-platform.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'

/* Hostile requests to the API server of a running platform. */

const MAPS = '/api/v1/namespaces/default/configmaps'
const PODS = '/api/v1/namespaces/default/pods'
const JSON_TYPE = 'application/json'
const LIMIT_MS = 60_000

let folder: DataFolder
let platform: PlatformProcess
let access: PlatformAccess
beforeAll(async () => {
  folder = await dataFolder()
  platform = await folder.up('--bare')
  access = await accessTo(platform)
})
afterAll(async () => {
  // Nothing of all this was a surprise to it.
  const log = readFileSync(`${folder.path}/platform.log`, 'utf8')
  await folder[Symbol.asyncDispose]()
  const errors = log.split('\n').filter((line) => line.includes('"level":"error"'))
  // That a busy machine is slow to take a connection is not about what was sent.
  expect(errors.filter((line) => !line.includes('UND_ERR_CONNECT_TIMEOUT'))).toEqual([])
})

interface Sent {
  readonly method?: string
  readonly body?: unknown
  readonly token?: string
  readonly type?: string
}

/** The path goes out as it is written: a URL would be tidied up first. */
async function send(path: string, { method, body, token = access.adminToken, type = JSON_TYPE }: Sent = {}) {
  const { hostname, port } = new URL(access.url)
  const payload = Buffer.from(body === undefined || typeof body === 'string' ? (body ?? '') : JSON.stringify(body))
  const call = httpsRequest({
    ...{ hostname, port, path, ca: access.caPem, agent: false, timeout: LIMIT_MS },
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(token !== '' && { authorization: `Bearer ${token}` }), 'content-type': type, 'content-length': payload.length },
  })
  call.on('timeout', () => call.destroy(new Error(`no answer within ${LIMIT_MS} ms`))).end(payload)
  call.on('error', () => undefined) // the waiting call rejects; later errors are about the rest of the body
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const text = await readText(response)
  return { code: response.statusCode ?? 0, ...(text.startsWith('{') ? (JSON.parse(text) as Status) : {}) }
}

interface Status {
  readonly kind?: string
  readonly reason?: string
  readonly message?: string
  readonly metadata?: { readonly uid?: string; readonly resourceVersion?: string }
}

const map = (name: string, data: Record<string, string> = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })

describe('tokens', () => {
  test('that somebody made up are refused', async () => {
    const { adminToken } = access
    const last = adminToken.at(-1) === 'a' ? 'b' : 'a'
    const asked = await send('/api/v1/namespaces/default/serviceaccounts/default/token', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
    expect(asked.code).toBe(201)
    const { token } = (asked as unknown as { status: { token: string } }).status
    expect((await send(MAPS, { token })).code).toBe(200)

    const [head = '', payload = '', signature = ''] = token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
    const admin = encoded({ ...claims, sub: 'system:admin', groups: ['system:masters'] })
    const hmac = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${admin}`
    const forged = [
      'x',
      `${adminToken.slice(0, -1)}${last}`,
      adminToken.slice(0, -1),
      `${head}.${admin}.${signature}`,
      `${encoded({ alg: 'none' })}.${admin}.`,
      // With the public key as if it were a secret.
      `${hmac}.${createHmac('sha256', access.caPem).update(hmac).digest('base64url')}`,
      `${head}.${payload}.${signature.slice(0, -4)}AAAA`,
      `${token}.${token}`,
      'a'.repeat(8_000),
    ]
    for (const each of ['', ...forged])
      expect({ each, ...(await send(MAPS, { token: each })) }).toMatchObject({ each, code: 401, reason: 'Unauthorized' })
    expect((await send('/livez', { token: '' })).code).toBe(200)
  })
})

describe('bodies', () => {
  test('of more than 3 MiB are refused, in good order', async () => {
    const big = map('big', { text: 'x'.repeat(3 << 20) })
    expect(await send(MAPS, { body: big })).toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' })
    expect(await send(`${MAPS}/big`, { method: 'PATCH', body: big, type: 'application/merge-patch+json' })).toMatchObject({ code: 413 })
    // The real server's limit of one ConfigMap is lower.
    expect(await send(MAPS, { body: map('big', { text: 'x'.repeat((1 << 20) + 1) }) })).toMatchObject({ code: 422, reason: 'Invalid' })
  })

  test('that are broken, nested without end or of another kind are refused', async () => {
    const deep = (levels: number) => `{"metadata":{"name":"deep"},"data":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`
    const bodies = ['', '{', '[]', 'null', '"text"', '{"metadata":{"name":"x"}}{}', '\0\0', deep(100_000), `${'['.repeat(1_000_000)}`]
    for (const body of bodies) {
      const { code, kind } = await send(MAPS, { method: 'POST', body })
      expect({ body: body.slice(0, 40), code, kind }).toMatchObject({ code: 400, kind: 'Status' })
    }
    expect(await send(MAPS, { method: 'POST', body: '<xml/>', type: 'text/xml' })).toMatchObject({ code: 415 })
    expect(await send(MAPS, { method: 'POST', body: deep(30_000), type: 'application/yaml' })).toMatchObject({ code: 400 })
    const patch = JSON.stringify([{ op: 'copy', from: '', path: '/data' }])
    await send(MAPS, { body: map('patched') })
    for (let round = 0; round < 3; round++) {
      const answer = await send(`${MAPS}/patched`, { method: 'PATCH', body: patch, type: 'application/json-patch+json' })
      expect(answer.code).toBeGreaterThanOrEqual(400)
      expect(answer.code).toBeLessThan(500)
    }
  })

  test('of an older version are refused', async () => {
    const made = await send(MAPS, { body: map('versioned', { value: '1' }) })
    const stale = { ...map('versioned', { value: '3' }), metadata: { name: 'versioned', resourceVersion: made.metadata?.resourceVersion } }
    expect(await send(`${MAPS}/versioned`, { method: 'PUT', body: map('versioned', { value: '2' }) })).toMatchObject({ code: 200 })
    expect(await send(`${MAPS}/versioned`, { method: 'PUT', body: stale })).toMatchObject({ code: 409, reason: 'Conflict' })
    const merge = { method: 'PATCH', body: { metadata: stale.metadata, data: { value: '3' } }, type: 'application/merge-patch+json' }
    expect(await send(`${MAPS}/versioned`, merge)).toMatchObject({ code: 409, reason: 'Conflict' })
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { resourceVersion: stale.metadata.resourceVersion } }
    expect(await send(`${MAPS}/versioned`, { method: 'DELETE', body: options })).toMatchObject({ code: 409, reason: 'Conflict' })
    expect(await send(`${MAPS}/versioned`)).toMatchObject({ code: 200, data: { value: '2' } })
  })
})

describe('paths that lead out of where they belong', () => {
  test('are no names', async () => {
    for (const name of ['..', '.', '../x', 'a/b', 'a\\b', '%2e%2e', 'a\0b', ' ', 'A', 'x'.repeat(300)]) {
      for (const [path, body] of [
        [MAPS, map(name)],
        [PODS, pod(name)],
        ['/api/v1/namespaces', { metadata: { name } }],
      ] as const)
        expect({ name, path, ...(await send(path, { body })) }).toMatchObject({ name, path, code: 422, reason: 'Invalid' })
    }
    for (const path of ['..%2f..%2fetc', '%2e%2e', '..', '../../kube-system', '..%5c..', 'a%2fb', 'a%00b', '%'])
      for (const method of ['GET', 'DELETE']) {
        const { code } = await send(`${MAPS}/${path}`, { method })
        expect([path, code]).toEqual([path, expect.toSatisfy((each: number) => each >= 400 && each < 500)])
      }
    expect((await send('/api/v1/namespaces/default')).metadata?.uid).toBeDefined()
  })

  test('are no keys', async () => {
    for (const key of ['..', '.', '../x', 'a/b', '..%2fx', '..x', 'a\0b', '', 'x'.repeat(300)]) {
      expect({ key, ...(await send(MAPS, { body: map('keys', { [key]: 'x' }) })) }).toMatchObject({ key, code: 422, reason: 'Invalid' })
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys' }, stringData: { [key]: 'x' } }
      expect(await send('/api/v1/namespaces/default/secrets', { body: secret })).toMatchObject({ code: 422, reason: 'Invalid' })
    }
  })

  test('are no places in a volume', async () => {
    const item = (path: string) => ({ key: 'k', path })
    for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../b', '..', '..x']) {
      const volumes = [
        { configMap: { name: 'c', items: [item(path)] } },
        { secret: { secretName: 's', items: [item(path)] } },
        { downwardAPI: { items: [{ path, fieldRef: { fieldPath: 'metadata.name' } }] } },
        { projected: { sources: [{ configMap: { name: 'c', items: [item(path)] } }] } },
        { projected: { sources: [{ serviceAccountToken: { path } }] } },
      ]
      for (const volume of volumes) {
        const body = pod('places', { volumes: [{ name: 'v', ...volume }] })
        expect({ path, volume, ...(await send(PODS, { body })) }).toMatchObject({ path, volume, code: 422, reason: 'Invalid' })
      }
    }
    for (const subPath of ['../x', '/etc', 'a/../../b']) {
      const mounts = { volumeMounts: [{ name: 'v', mountPath: '/v', subPath }] }
      expect(await send(PODS, { body: pod('places', { volumes: [{ name: 'v', emptyDir: {} }] }, mounts) })).toMatchObject({ code: 422 })
    }
    expect(await send(PODS, { body: pod('places', {}, { name: '../x' }) })).toMatchObject({ code: 422 })
    expect(await send(PODS, { body: pod('places', { volumes: [{ name: '../v', emptyDir: {} }] }) })).toMatchObject({ code: 422 })
    expect(await send(`${PODS}/..%2f..%2fetc/log?container=..%2f..`)).toMatchObject({ code: expect.any(Number), kind: 'Status' })
  })
})

describe('rules that take too long', () => {
  test('are bounded, and others are answered meanwhile', async () => {
    const properties = { pattern: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' }, rule: { type: 'string' } }
    const rules = [{ rule: "!has(self.rule) || self.rule.matches('^(a+)+$')", message: 'does not match' }]
    const schema = { type: 'object', properties: { spec: { type: 'object', properties, 'x-kubernetes-validations': rules } } }
    const made = await send('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: definition(schema) })
    // Bounds of the real server: either the definition is refused for what it may cost, or each object is judged in a bounded time.
    if (made.code === 422) expect(made.message).toMatch(/cost|budget/i)
    else {
      expect(made.code).toBe(201)
      const path = '/apis/hostile.example.com/v1/namespaces/default/hostiles'
      for (const spec of [{ pattern: 'a'.repeat(50_000) }, { rule: `${'a'.repeat(50_000)}!` }]) {
        const hostile = send(path, { body: { apiVersion: 'hostile.example.com/v1', kind: 'Hostile', metadata: { name: 'h' }, spec } })
        const [others, { code }] = await Promise.all([Promise.all(Array.from({ length: 5 }, () => send('/livez'))), hostile])
        expect(others.map((each) => each.code)).toEqual([200, 200, 200, 200, 200])
        expect(code).toBe(422)
      }
    }
    await send('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hostiles.hostile.example.com', { method: 'DELETE' })
  })
})

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function pod(name: string, spec: object = {}, container: object = {}) {
  const containers = [{ name: 'main', image: 'exec:///bin/true', ...container }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } }
}

function definition(openAPIV3Schema: object) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'hostiles.hostile.example.com' },
    spec: {
      group: 'hostile.example.com',
      scope: 'Namespaced',
      names: { plural: 'hostiles', singular: 'hostile', kind: 'Hostile', listKind: 'HostileList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
}
