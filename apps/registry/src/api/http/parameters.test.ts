import Type from 'typebox'
import { describe, expect, it } from 'vitest'
import { routes } from '../routes.ts'
import { readPathParameters, readQuery } from './parameters.ts'
import { createRouter } from './router.ts'

const schema = Type.Object({
  limit: Type.Optional(Type.Integer()),
  q: Type.Optional(Type.String()),
  all: Type.Optional(Type.Boolean()),
  tag: Type.Optional(Type.Array(Type.String({ maxLength: 5 }), { maxItems: 2 })),
  kind: Type.Optional(Type.Array(Type.Enum(['x', 'y']))),
})

describe('query parameters', () => {
  it('converts by the schema', () => {
    expect(readQuery('limit=5&q=a+b%20c%2B&all=true&tag=x&tag=y&', schema)).toEqual({ limit: 5, q: 'a b c+', all: true, tag: ['x', 'y'] })
  })

  it('takes an empty value for none', () => expect(readQuery('limit=&q=&all&tag=&kind', schema)).toEqual({}))

  it.each([
    ['limit=abc', 'Invalid limit parameter: must be an integer'],
    ['limit=1.5', 'Invalid limit parameter: must be an integer'],
    ['limit=1e3', 'Invalid limit parameter: must be an integer'],
    ['limit=99999999999999999', 'Invalid limit parameter: must be an integer'],
    ['all=yes', 'Invalid all parameter: must be true or false'],
    ['limit=1&limit=2', 'limit is given more than once'],
    ['tag=a&tag=b&tag=c', 'tag is given more than 2 times'],
    ['tag=abcdef', 'tag must not be longer than 5 characters'],
    ['kind=x&kind=z', 'kind must be one of x, y'],
    ['nope=1', 'unknown query parameter "nope"; known are limit, q, all, tag, kind'],
    ['__proto__=1', 'unknown query parameter "__proto__"; known are limit, q, all, tag, kind'],
    ['q=%zz', 'invalid URL encoding in q'],
    ['%zz=1', 'invalid URL encoding in the query'],
  ])('%s → %s', (query, message) => expect(() => readQuery(query, schema)).toThrow(message))

  it('refuses all where there are none', () => expect(() => readQuery('a=1', undefined)).toThrow('there are none here'))
})

describe('path parameters', () => {
  const read = (path: string) => {
    const match = createRouter(routes).find(path)
    return match && readPathParameters(match)
  }

  it('are decoded', () => {
    expect(read('/registry/default/v0/servers/com.example%2Fa/versions/1.0.0%2Bb')).toMatchObject({
      registryName: 'default',
      serverName: 'com.example/a',
      version: '1.0.0+b',
    })
  })

  it.each([
    ['/registry//v0.1/servers', 'registryName cannot be empty'],
    ['/registry/%20/v0.1/servers', 'registryName cannot be empty'],
    ['/registry/a%09b/v0.1/servers', 'registryName cannot contain whitespace'],
    ['/registry/a%00b/v0.1/servers', 'registryName cannot contain whitespace'],
    ['/registry/%E0%A4/v0.1/servers', 'invalid URL encoding in registryName'],
    ['/registry/a/v0.1/servers/fetch/versions', "invalid server name format: server name must be in format 'dns-namespace/name'"],
    ['/registry/a/v0.1/servers/a%2Fb%2Fc/versions', "invalid server name format: server name must contain exactly one '/' separator"],
    ['/registry/a/v0.1/servers/a%2Fb/versions/%0A', 'version cannot be empty'],
  ])('%s → %s', (path, message) => expect(() => read(path)).toThrow(message))
})
