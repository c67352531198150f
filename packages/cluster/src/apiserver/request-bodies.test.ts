import { request } from 'node:https'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { field, number } from '../encoding/protobuf/testing/encode.ts'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'
import { textAt } from './objects/served-kind.ts'
import { gizmos } from './testing/gizmos.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const YAML = 'application/yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

describe('bodies of requests', () => {
  const errors: unknown[] = []
  let server: EmbeddedApiServer
  beforeAll(async () => {
    server = await startApiServer({ onError: (error) => errors.push(error) })
  })
  afterAll(async () => {
    await server.close()
    expect(errors).toEqual([])
  })

  function send(method: string, path: string, body: string | Buffer, type: string): Promise<{ status: number; body: JsonObject }> {
    const headers = { authorization: `Bearer ${server.adminToken}`, 'content-type': type, 'content-length': Buffer.byteLength(body) }
    return new Promise((resolve, reject) => {
      const call = request(`${server.url}${path}`, { method, ca: server.caPem, headers, agent: false }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) as JsonObject }),
        )
      })
      call.on('error', reject)
      call.end(body)
    })
  }
  const refusal = async (body: string | Buffer, type: string, path = MAPS) => {
    const answer = await send('POST', path, body, type)
    return [answer.status, answer.body['message']]
  }

  it('may be YAML', async () => {
    const made = await send(
      'POST',
      MAPS,
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\ndata:\n  a: "yes"\n  b: 2024-01-01\n',
      YAML,
    )
    expect([made.status, made.body['data']]).toEqual([201, { a: 'yes', b: '2024-01-01' }])
    const anchors = await send(
      'POST',
      MAPS,
      'metadata: {name: y2}\ndata: &a {x: "1"}\nbinaryData: {<<: *a, y: AA==}\n---\nmetadata: {name: y3}\n',
      YAML,
    )
    expect([anchors.status, anchors.body['message']]).toEqual([400, expect.stringContaining('illegal base64')])
    const applied = await send(
      'PATCH',
      `${MAPS}/y4?fieldManager=me`,
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y4}\ndata: {a: b}\n',
      'application/apply-patch+yaml',
    )
    expect([applied.status, applied.body['data']]).toEqual([201, { a: 'b' }])
    expect((await send('DELETE', `${MAPS}/y1`, 'propagationPolicy: Background\n', YAML)).status).toBe(200)
    expect(await refusal('', YAML)).toEqual([422, expect.stringContaining('metadata.name: Required value')])
  })

  it('are refused when their YAML is bad, hostile or ambiguous', async () => {
    expect(await refusal('a: [\n', YAML)).toEqual([
      400,
      expect.stringMatching(/^the object provided is unrecognized \(must be of type ConfigMap\): yaml: line \d+: .+ \(613a205b0a\)$/),
    ])
    expect(await refusal('hello', YAML)).toEqual([400, expect.stringContaining('json: cannot unmarshal string into Go value')])
    expect(await refusal('metadata: {name: yy}\ndata: {a: 1}\n', YAML)).toEqual([
      400,
      expect.stringContaining('cannot unmarshal number into Go struct field ConfigMap.data of type string'),
    ])
    expect(await refusal('spec: .inf\n', YAML)).toEqual([400, expect.stringContaining('json: unsupported value: +Inf')])
    const twice = 'metadata: {name: twice}\ndata: {a: "1"}\ndata: {a: "2"}\n'
    expect(await refusal(twice, YAML, `${MAPS}?fieldValidation=Strict`)).toEqual([
      400,
      expect.stringContaining('yaml: unmarshal errors:\n  line 3: key "data" already set in map'),
    ])
    expect((await send('POST', MAPS, twice, YAML)).body['data']).toEqual({ a: '2' })
    expect(await refusal('['.repeat(100_000), YAML)).toEqual([400, expect.any(String)])
    expect(await refusal(`${'{a: '.repeat(5_000)}1${'}'.repeat(5_000)}`, YAML)).toEqual([400, expect.any(String)])
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...[...'bcdefghi'].map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[at]}`)}]`),
    ]
    expect(await refusal(bomb.join('\n'), YAML)).toEqual([400, expect.stringContaining('alias')])
    expect(await refusal(`a: ${'x'.repeat(300 << 10)}`, YAML)).toEqual([413, expect.stringContaining('send JSON')])
    const asJson = JSON.stringify({ metadata: { name: 'large' }, data: { a: 'x'.repeat(300 << 10) } })
    expect((await send('POST', MAPS, asJson, YAML)).status).toBe(201)
  })

  it('may be protobuf', async () => {
    const data = field(2, field(1, 'k'), field(2, 'v'))
    const made = await send('POST', MAPS, envelope('v1', 'ConfigMap', field(1, field(1, 'p1')), data), PROTOBUF)
    expect([made.status, made.body['data'], made.body['kind']]).toEqual([201, { k: 'v' }, 'ConfigMap'])
    const unnamed = await send('POST', MAPS, Buffer.concat([Buffer.from('k8s\0'), field(2, field(1, field(1, 'p2')))]), PROTOBUF)
    expect(unnamed.status).toBe(201)
    const changed = await send('PUT', `${MAPS}/p1`, envelope('v1', 'ConfigMap', field(1, field(1, 'p1'))), PROTOBUF)
    expect([changed.status, changed.body['data']]).toEqual([200, undefined])
    const options = envelope('v1', 'DeleteOptions', field(2, field(1, 'another-uid')))
    const other = await send('DELETE', `${MAPS}/p1`, options, PROTOBUF)
    expect([other.status, other.body['reason']]).toEqual([409, 'Conflict'])
    expect((await send('DELETE', `${MAPS}/p1`, envelope('v1', 'DeleteOptions', number(1, 0)), PROTOBUF)).status).toBe(200)
  })

  it('may be DeleteOptions of the group of the object, as Go clients send them', async () => {
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    expect((await send('POST', crds, JSON.stringify(gizmos({ type: 'string' })), 'application/json')).status).toBe(201)
    const options = envelope('apiextensions.k8s.io/v1', 'DeleteOptions', field(2, field(1, 'another-uid')))
    expect((await send('DELETE', `${crds}/gizmos.example.com`, options, PROTOBUF)).status).toBe(409)
    const deletion = envelope('apiextensions.k8s.io/v1', 'DeleteOptions')
    expect((await send('DELETE', `${crds}/gizmos.example.com`, deletion, PROTOBUF)).status).toBe(200)
  })

  it('are refused with the words of the real server when their protobuf is bad', async () => {
    const unrecognized = (why: string) => [400, `the object provided is unrecognized (must be of type ConfigMap): ${why}`]
    const prefix = 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]'
    expect(await refusal('', PROTOBUF)).toEqual(unrecognized('empty data (<empty>)'))
    expect(await refusal('k8s', PROTOBUF)).toEqual(unrecognized(`${prefix} (6b3873)`))
    expect(await refusal('{"kind":"ConfigMap"}', PROTOBUF)).toEqual(unrecognized(`${prefix} ({"kind":"ConfigMap"})`))
    expect(await refusal('k8s\0', PROTOBUF)).toEqual(unrecognized('empty body (6b387300)'))
    expect(await refusal('k8s\0\x0a\x7f', PROTOBUF)).toEqual(unrecognized('unexpected EOF (6b3873000a7f)'))
    const cannot = (kind: string, why: string) => [400, `${kind} in version "v1" cannot be handled as a ConfigMap: ${why}`]
    expect(await refusal(envelope('v1', 'ConfigMap', field(1, 'x').subarray(0, 2)), PROTOBUF)).toEqual(
      cannot('ConfigMap', 'unexpected EOF'),
    )
    expect(await refusal(envelope('v1', 'Secret'), PROTOBUF)).toEqual(
      cannot('Secret', 'converting (v1.Secret) to (core.ConfigMap): unknown conversion'),
    )
    expect(await refusal(envelope('v1', 'Nonsense'), PROTOBUF)).toEqual(
      cannot('Nonsense', 'no kind "Nonsense" is registered for version "v1" in scheme "pkg/runtime/scheme.go:110"'),
    )
  })

  it('are bounded in size, whatever their form', async () => {
    const many = envelope('v1', 'Pod', field(2, Buffer.concat(Array<Buffer>(1_500_000).fill(Buffer.from([0x12, 0])))))
    const answer = await send('POST', '/api/v1/namespaces/default/pods', many, PROTOBUF)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(textAt(answer.body, 'kind')).toBe('Status')
    const large = envelope('v1', 'ConfigMap', field(2, field(1, 'k'), field(2, 'x'.repeat(4 << 20))))
    expect((await send('POST', MAPS, large, PROTOBUF)).status).toBe(413)
  })

  it('of other types are refused', async () => {
    expect(await refusal('x', 'text/plain')).toEqual([
      415,
      'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    ])
  })
})

function envelope(apiVersion: string, kind: string, ...raw: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from('k8s\0'), field(1, field(1, apiVersion), field(2, kind)), field(2, ...raw)])
}
