import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { describe, expect, it } from 'vitest'
import { wireFields } from '../../encoding/protobuf/wire-reader.ts'
import { swaggerType } from './swagger.ts'
import { swaggerProtobuf } from './swagger-protobuf.ts'

/** All fields at a path of numbers, as `openapi.v2.Document` has them. */
function at(message: Buffer, ...path: readonly number[]): (number | Buffer)[] {
  const [first, ...rest] = path
  const found = [...wireFields(message)].filter(({ number }) => number === first)
  if (rest.length === 0) return found.map(({ wire, value, bytes }) => (wire === 0 ? value : bytes))
  return found.flatMap(({ bytes }) => at(bytes, ...rest))
}
const texts = (message: Buffer, ...path: readonly number[]) => at(message, ...path).map(String)

const gvk = { group: '', version: 'v1', kind: 'Namespace' }
const DOCUMENT: JsonObject = {
  swagger: '2.0',
  info: { title: 'Kubernetes', version: 'v1' },
  paths: {
    '/api/v1/namespaces/{name}': {
      parameters: [{ name: 'name', in: 'path', type: 'string', required: true }],
      patch: {
        operationId: 'patchNamespace',
        consumes: ['application/json-patch+json', 'application/merge-patch+json'],
        parameters: [
          { name: 'body', in: 'body', required: true, schema: { type: 'object' } },
          { name: 'fieldValidation', in: 'query', type: 'string' },
        ],
        responses: { '200': { description: 'OK', schema: { $ref: '#/definitions/Namespace' } } },
        'x-kubernetes-group-version-kind': gvk,
      },
    },
  },
  definitions: {
    Namespace: {
      type: 'object',
      required: ['spec'],
      description: 'x'.repeat(300),
      properties: {
        spec: { $ref: '#/definitions/Spec' },
        list: { type: 'array', items: { type: 'integer', minimum: -1.5, maximum: 1e300, enum: [1, null] } },
        map: { type: 'object', additionalProperties: { type: 'string', maxLength: 5_000_000_000 } },
        open: { additionalProperties: true, default: { a: [1] } },
      },
      constructor: 'no member',
      'x-kubernetes-group-version-kind': [gvk],
    },
  },
}

describe('OpenAPI v2 as protobuf', () => {
  const bytes = swaggerProtobuf(DOCUMENT)

  it('has the operations with their parameters and kinds', () => {
    const patch = [8, 2, 2, 8] as const
    expect(texts(bytes, 1)).toEqual(['2.0'])
    expect(texts(bytes, 2, 1)).toEqual(['Kubernetes'])
    expect(texts(bytes, 8, 2, 1)).toEqual(['/api/v1/namespaces/{name}'])
    expect(texts(bytes, 8, 2, 2, 9, 1, 2, 4, 4)).toEqual(['name'])
    expect(texts(bytes, ...patch, 7)).toEqual(['application/json-patch+json', 'application/merge-patch+json'])
    expect(texts(bytes, ...patch, 8, 1, 1, 2)).toEqual(['body'])
    expect(texts(bytes, ...patch, 8, 1, 2, 3, 4)).toEqual(['fieldValidation'])
    expect(texts(bytes, ...patch, 9, 1, 2, 1, 2, 1, 1)).toEqual(['#/definitions/Namespace'])
    expect(texts(bytes, ...patch, 13, 1)).toEqual(['x-kubernetes-group-version-kind'])
    expect(JSON.parse(texts(bytes, ...patch, 13, 2, 2)[0] ?? '')).toEqual(gvk)
  })

  it('has the schemas with all that they say', () => {
    const namespace = [9, 1, 2] as const
    const members = [...namespace, 25, 1] as const
    expect(texts(bytes, 9, 1, 1)).toEqual(['Namespace'])
    expect(texts(bytes, ...namespace, 4)).toEqual(['x'.repeat(300)])
    expect(texts(bytes, ...namespace, 19)).toEqual(['spec'])
    expect(texts(bytes, ...members, 1)).toEqual(['spec', 'list', 'map', 'open'])
    expect(texts(bytes, ...members, 2, 1)).toEqual(['#/definitions/Spec'])
    expect(texts(bytes, ...members, 2, 22, 1)).toEqual(['array', 'object'])
    const items = [...members, 2, 23, 1] as const
    const [minimum] = at(bytes, ...items, 9)
    const [maximum] = at(bytes, ...items, 7)
    expect([(minimum as Buffer).readDoubleLE(), (maximum as Buffer).readDoubleLE()]).toEqual([-1.5, 1e300])
    expect(texts(bytes, ...items, 20, 2)).toEqual(['1', 'null'])
    expect(at(bytes, ...members, 2, 21, 1, 11)).toEqual([5_000_000_000])
    expect(at(bytes, ...members, 2, 21, 2)).toEqual([1])
    expect(texts(bytes, ...members, 2, 5, 2)).toEqual(['{"a":[1]}'])
    expect(JSON.parse(texts(bytes, ...namespace, 31, 2, 2)[0] ?? '')).toEqual([gvk])
  })

  it.each([
    ['', 'application/json'],
    ['application/json, */*', 'application/json'],
    ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'],
    ['application/com.github.proto-openapi.spec.v2.v1.0+protobuf', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'],
    [
      'application/json;q=0.1, application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
      'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
    ],
    ['text/html, application/*;q=0.5', 'application/json'],
    ['application/yaml', undefined],
    ['constructor, __proto__;q=0.5', undefined],
    ['constructor, application/json;q=0.5', 'application/json'],
  ])('a client that accepts %j gets %s', (accept, type) => {
    expect(swaggerType(accept)).toBe(type)
  })
})
