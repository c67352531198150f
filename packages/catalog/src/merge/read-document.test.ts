import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { plainTopLevel } from './plain-document.ts'
import { readDocument } from './read-document.ts'

const document = (name: string, version = '1.0.0') => ({ name, description: 'A server', version })

function problemOf(text: string, format: 'toolhive' | 'upstream' = 'toolhive'): string {
  const read = readDocument(text, format)
  return read.ok ? `fine, ${read.document.entries.length} entries` : read.problem
}

describe('readDocument', () => {
  it('[003-055] reads servers as a list and as an object alike', () => {
    const list = readDocument('{"servers":[{"name":"a","image":"x/a:1"},{"name":"b","url":"https://b"}]}', 'toolhive')
    const object = readDocument(
      '{"servers":{"a":{"name":"a","image":"x/a:1"}},"remote_servers":{"b":{"name":"b","url":"https://b"}}}',
      'toolhive',
    )
    expect(list).toEqual(object)
    expect(list).toMatchObject({
      ok: true,
      problems: [],
      document: {
        entries: [
          { name: 'a', field: 'servers' },
          { name: 'b', field: 'remote_servers' },
        ],
      },
    })
  })

  it('[003-077] takes servers that have only a name and an image', () => {
    expect(problemOf('{"servers":[{"name":"github-mcp","image":"ghcr.io/github/mcp-server:latest"}]}')).toBe('fine, 1 entries')
  })

  it('keeps each entry as it was written: order of members, numbers, unknown members', () => {
    const text = '{ "servers": { "a": { "zeta": 1.10, "image": "x/a:1", "9": [1, 2], "custom": {"b": 1, "a": 2}, "tags": ["t"] } } }'
    const read = readDocument(text, 'toolhive')
    expect(read.ok && read.document.entries[0]).toEqual({
      name: 'a',
      field: 'servers',
      tags: ['t'],
      text: '{"zeta":1.10,"image":"x/a:1","9":[1,2],"custom":{"b":1,"a":2},"tags":["t"]}',
    })
  })

  it('knows an entry by the name that the registry server gives it', () => {
    const read = readDocument('{"servers":{"key":{"name":"io.example/a","image":"x/a:1"}}}', 'toolhive')
    expect(read.ok && read.document.entries[0]?.name).toBe('io.example/a')
  })

  it('reads the upstream wrapper, bare lists and envelopes', () => {
    const bare = JSON.stringify([document('io.example/a'), document('io.example/a', '2.0.0')])
    const enveloped = JSON.stringify({
      data: { servers: [{ server: document('io.example/a'), _meta: {} }] },
      meta: { last_updated: '2026-01-01T00:00:00Z' },
    })
    expect(problemOf(bare, 'upstream')).toBe('fine, 2 entries')
    const read = readDocument(enveloped, 'upstream')
    expect(read).toMatchObject({
      ok: true,
      document: { entries: [{ name: 'io.example/a', version: '1.0.0' }], lastUpdated: '2026-01-01T00:00:00Z' },
    })
  })

  it.each([
    ['', 'the document is empty'],
    ['{', /not JSON/],
    ['{"servers":{}} x', /not JSON/],
    ['"text"', 'it is neither an object nor a list'],
    ['{"servers":3}', 'servers is neither an object nor a list'],
    ['{"tools":[]}', 'it has no servers'],
    ['{"data":{"servers":[]}}', 'it is in upstream format, and the registry says toolhive'],
    ['{"servers":{},"servers":{}}', 'it has the member "servers" twice'],
    ['{"servers":[{"image":"x"}]}', 'servers/0 has no name'],
    ['{"servers":[{"name":"a","image":"x"},{"name":"a","image":"y"}]}', 'it has "a" twice'],
    ['{"servers":{"a":{"image":"x","name":"b"},"a":{"image":"x","name":"c"}}}', 'it has "a" twice'],
    ['{"servers":{"a":{"image":"x"}},"remote_servers":{"a":{"url":"https://a"}}}', 'it has "a" twice'],
    ['{"servers":{},"groups":[{}]}', 'groups/0 has no name'],
    ['{"servers":{},"groups":{}}', 'groups is not a list'],
    ['['.repeat(500_000), /not JSON|nested/],
    [`{"servers":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}`, 'fine, 0 entries'],
  ])('[003-045] [003-095] judges %.40s', (text, expected) => {
    expect(problemOf(text)).toMatch(expected)
  })

  it('refuses one name and version twice in upstream format', () => {
    expect(problemOf(JSON.stringify([document('x/a'), document('x/a')]), 'upstream')).toBe('it has "x/a" version "1.0.0" twice')
    expect(problemOf('{"servers":{}}', 'upstream')).toBe('data.servers is not a list')
    expect(problemOf('{}', 'upstream')).toBe('it has no data.servers')
  })

  it('leaves a bad entry out alone, and never quotes it', () => {
    const read = readDocument('{"servers":{"a":{"image":"x"},"b":{"token":"s3cret"},"c":{"image":"x","image":"y"},"d":[]}}', 'toolhive')
    expect(read).toMatchObject({
      ok: true,
      document: { entries: [{ name: 'a' }] },
      problems: [
        { entry: 'b', message: '/image is required' },
        { entry: 'c', message: 'has the member "image" twice in one object' },
        { entry: 'd', message: 'must be an object' },
      ],
    })
    expect(JSON.stringify(read.ok && read.problems)).not.toContain('s3cret')
  })

  it('reads a text as it reads its bytes, however it is written', () => {
    const json = fc.jsonValue({ maxDepth: 4 })
    const server = fc.oneof(
      json,
      fc.record(
        { image: fc.string(), name: fc.string(), url: fc.webUrl(), description: json, ['__proto__']: json, 1: json },
        { requiredKeys: [] },
      ),
    )
    const servers = fc.oneof(
      json,
      fc.array(server),
      fc.dictionary(fc.string(), server),
      fc.dictionary(fc.constantFrom('a', 'b', '1', '0'), server),
    )
    const document = fc.oneof(
      json,
      fc.array(server),
      fc.record(
        { servers, remote_servers: servers, groups: json, last_updated: json, data: fc.record({ servers }), meta: json },
        { requiredKeys: [] },
      ),
    )
    const form = fc.constantFrom(undefined, 1, 2, '\t')
    const end = fc.constantFrom('', '\n', '  ', 'x')
    fc.assert(
      fc.property(document, form, end, fc.constantFrom('toolhive' as const, 'upstream' as const), (value, indent, rest, format) => {
        const text = `${JSON.stringify(value, undefined, indent)}${rest}`
        expect(readDocument(text, format)).toEqual(readDocument(Buffer.from(text), format))
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['a server', (name: string) => ({ servers: { [name]: { image: 'x' } } })],
    ['a member', (name: string) => ({ servers: {}, [name]: 1 })],
  ])('takes no longer name of %s in a text than in bytes', (_, documentOf) => {
    for (const [name, isRead] of [
      ['a'.repeat(16_382), true],
      ['a'.repeat(16_383), false],
      ['\n'.repeat(8_191), true],
      ['\n'.repeat(8_192), false],
      ['€'.repeat(5_461), false],
    ] as const) {
      const text = JSON.stringify(documentOf(name))
      expect([readDocument(text, 'toolhive').ok, readDocument(Buffer.from(text), 'toolhive').ok]).toEqual([isRead, isRead])
    }
  })

  it('scans no bytes of what JSON.stringify has written, plain or with two spaces', () => {
    const document = fc.oneof(fc.array(fc.jsonValue({ maxDepth: 4 })), fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })))
    const form = fc.constantFrom(undefined, 2)
    fc.assert(
      fc.property(document, form, (value, indent) => {
        // Once more, because -0 is written as 0.
        const text = JSON.stringify(JSON.parse(JSON.stringify(value)), undefined, indent)
        expect(plainTopLevel(text)).toBeDefined()
      }),
    )
  })

  it('writes nothing that is longer than what it reads, however deep that is', () => {
    const text = `{"servers": ${'['.repeat(500)}${'0,'.repeat(2_000)}0${']'.repeat(500)}}`
    const written = vi.spyOn(JSON, 'stringify')
    try {
      expect(readDocument(text, 'toolhive')).toMatchObject({ ok: true, document: { entries: [] } })
      expect(Math.max(...written.mock.results.map(({ value }) => String(value).length))).toBeLessThanOrEqual(text.length)
    } finally {
      written.mockRestore()
    }
  })

  it.each(['{"servers":{"a":{"image":"x","n":1.0}}}', '{"servers":{"a":{"image":"x","n":-0}}}', '{"servers":{"a":{"image":"x\\/y"}}}'])(
    'loses nothing of %s',
    (text) => {
      const read = readDocument(text, 'toolhive')
      expect(read.ok && text.includes(read.document.entries[0]?.text ?? 'none')).toBe(true)
    },
  )
})
