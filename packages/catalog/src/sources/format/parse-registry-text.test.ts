import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { documentText } from '../testing/fetch-context.ts'
import { createEntryCollector } from './entry-collector.ts'
import { type ParseOptions, parseRegistryInTurns, parseRegistryText } from './parse-registry-text.ts'

const toolhive = '{"image":"ghcr.io/example/fetch:1","description":"Fetches pages","tags":["web"]}'

function read(text: string, options?: ParseOptions) {
  const { entries, problems, dropped } = parseRegistryText(text, options)
  return {
    names: entries.map(({ name, version }) => `${name}@${version}`),
    entries,
    problems: problems.map(({ entry, pointer, message, severity }) => `${severity} ${entry}${pointer}: ${message}`),
    dropped,
  }
}

describe('the format of a file', () => {
  const envelope = `{"server":${documentText('a')},"_meta":{}}`
  it.each([
    ['the upstream wrapper', `{"version":"1.0.0","meta":{},"data":{"servers":[${documentText('a')}]}}`, 'io.example/a'],
    ['the wrapper with envelopes', `{"data":{"servers":[${envelope}]}}`, 'io.example/a'],
    ['a page of the API', `{"servers":[${envelope}],"metadata":{"count":1}}`, 'io.example/a'],
    ['a list under servers', `{"servers":[${documentText('a')}]}`, 'io.example/a'],
    ['a bare list', `[${documentText('a')}]`, 'io.example/a'],
    ['a bare list of envelopes', `[${envelope}]`, 'io.example/a'],
    ['one document', documentText('a'), 'io.example/a'],
    ['one envelope', envelope, 'io.example/a'],
    ['ToolHive', `{"version":"1.0.0","last_updated":"x","servers":{"fetch":${toolhive}}}`, 'io.github.stacklok/fetch'],
    ['ToolHive with a slash in the key', `{"servers":{"io.example/fetch":${toolhive}}}`, 'io.example/fetch'],
    ['ToolHive as a list', `{"servers":[{"name":"fetch","image":"x/y:1"}]}`, 'io.github.stacklok/fetch'],
    ['remote servers alone', `{"remote_servers":{"fetch":{"url":"https://example.com/mcp"}}}`, 'io.github.stacklok/fetch'],
    ['a byte order mark', `\ufeff[${documentText('a')}]`, 'io.example/a'],
  ])('is recognised: %s', (_name, text, name) => {
    const { names, dropped } = read(text)
    expect({ names, dropped }).toEqual({ names: [`${name}@1.0.0`], dropped: 0 })
  })

  it('may be mixed in a list', () => {
    expect(
      read(`{"servers":[${documentText('a')},{"name":"b","url":"https://example.com"},${envelope.replace('/a', '/c')}]}`).names,
    ).toEqual(['io.example/a@1.0.0', 'io.github.stacklok/b@1.0.0', 'io.example/c@1.0.0'])
  })

  it.each(['{"servers":{}}', '{"data":{"servers":[]}}', '[]', '{"servers":[]}', '{"groups":[]}'])('may be without servers: %s', (text) => {
    expect(read(text)).toMatchObject({ names: [], problems: [], dropped: 0 })
  })

  it.each<[string, ParseOptions, string]>([
    ['{"a":1}', {}, 'it has no servers'],
    ['"text"', {}, 'it is neither an object nor a list'],
    ['{"servers":7}', {}, 'servers is neither an object nor a list'],
    ['{"data":{"servers":{}}}', {}, 'data.servers is not a list'],
    ['{"servers":[],"servers":[]}', {}, 'it has the member "servers" twice'],
    ['{"servers":{}}', { format: 'upstream' }, 'it is in ToolHive format, and the configuration says upstream'],
    ['{"data":{"servers":[]}}', { format: 'toolhive' }, 'it is in upstream format, and the configuration says toolhive'],
  ])('is refused when it is none: %s', (text, options, reason) => {
    expect(() => read(text, options)).toThrow(`the document is no registry: ${reason}`)
    expect(() => read(text, options)).toThrow(expect.objectContaining({ code: 'source_failed' }))
  })

  it.each(['', ' ', '<html><body>Sign in</body></html>', '{"servers":[', 'null x', '\ufeff'])(
    'is refused when it is no JSON: %j',
    (text) => {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'source_failed' }))
      expect(() => parseRegistryText(Buffer.from(text, 'utf16le'))).toThrow(expect.objectContaining({ code: 'source_failed' }))
    },
  )
})

describe('entries', () => {
  it('keep their text but for white space', () => {
    const odd =
      '{"zeta":1.0,"name":"io.example/a","10":12345678901234567890,"description":"two  spaces","1":-0,"version":"1","icons":[],"é":"\\u00e9"}'
    const spaced = odd.replaceAll(',"', ' ,\n\t"').replaceAll('":', '" : ')
    for (const text of [`[${spaced}]`, `{"servers":[{"server": ${spaced} }]}`, `{"data":{"servers":[${odd}]}}`, spaced])
      expect(read(text).entries.map((entry) => entry.text)).toEqual([odd])
  })

  it('keep what their registry says about them', () => {
    const official = '"io.modelcontextprotocol.registry/official"'
    const meta = `{${official}:{"status":"deprecated","statusMessage":"use b","publishedAt":"2025-01-01T00:00:00Z","updatedAt":"2025-02-01T00:00:00.5Z","statusChangedAt":"2025-03-01T00:00:00Z","isLatest":true}}`
    expect(read(`[{"_meta":${meta},"server":${documentText('a')}}]`).entries).toEqual([
      {
        name: 'io.example/a',
        version: '1.0.0',
        text: documentText('a'),
        tags: [],
        status: 'deprecated',
        statusMessage: 'use b',
        publishedAt: '2025-01-01T00:00:00Z',
        updatedAt: '2025-02-01T00:00:00.5Z',
      },
    ])
    expect(read(`[${documentText('a')}]`).entries).toEqual([{ name: 'io.example/a', version: '1.0.0', text: documentText('a'), tags: [] }])
  })

  it('have the tags of all publishers', () => {
    expect(read(`{"servers":{"fetch":${toolhive}}}`).entries[0]?.tags).toEqual(['web'])
  })

  it('are dropped alone, with all that is wrong and where', () => {
    const bad = '{"name":"no-slash","description":"","version":"^1.0","packages":[{"registryType":7}]}'
    const { names, problems, dropped } = read(`[${documentText('a')},${bad},{"x": tru},5,${documentText('b')}]`)
    expect(names).toEqual(['io.example/a@1.0.0', 'io.example/b@1.0.0'])
    expect(dropped).toBe(3)
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^dropped no-slash\/name: server name must be/),
        'dropped no-slash/description: must not be empty',
        expect.stringMatching(/^dropped no-slash\/version: must be a specific version/),
        'dropped no-slash/packages/0/registryType: must be a string',
        'dropped servers/2: is not JSON',
        'dropped servers/3: must be an object',
      ]),
    )
  })

  it('are dropped when they are too deep, too large or no UTF-8', () => {
    const deep = `{"name":"io.example/deep","x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
    const large = `{"name":"io.example/large","x":"${'x'.repeat(5 * 1024 * 1024)}"}`
    const { names, problems } = read(`[${deep},${large},${documentText('a')}]`)
    expect(names).toEqual(['io.example/a@1.0.0'])
    expect(problems).toEqual([
      'dropped io.example/deep: is nested deeper than 64 levels',
      'dropped servers/1: is larger than 4194304 bytes',
    ])
    const latin = Buffer.from(`[{"name":"io.example/x","description":"\xe9","version":"1"},${documentText('a')}]`, 'latin1')
    expect(parseRegistryText(latin)).toMatchObject({
      dropped: 1,
      problems: [{ message: 'is not UTF-8' }],
      entries: [{ name: 'io.example/a' }],
    })
  })

  it('are dropped when readers could differ on what they say', () => {
    const twice = documentText('a').replace('{', '{"n\\u0061me":"io.example/other",')
    expect(read(`[${twice},${documentText('b')}]`)).toMatchObject({
      names: ['io.example/b@1.0.0'],
      problems: ['dropped io.example/a: has the member "name" twice in one object'],
    })
    expect(read('{"servers":{"x":{"image":"a:1","image":"b:1"}}}').problems).toEqual([
      'dropped x: has the member "image" twice in one object',
    ])
  })

  it('count once per name and version, the first one', () => {
    const other = documentText('a').replace('A server', 'Another')
    const { entries, problems } = read(`[${documentText('a')},${other},${documentText('a', '2.0.0')}]`)
    expect(entries.map(({ version, text }) => [version, text.includes('Another')])).toEqual([
      ['1.0.0', false],
      ['2.0.0', false],
    ])
    expect(problems).toEqual(['dropped io.example/a: "io.example/a" "1.0.0" is there already; the first one counts'])
    expect(read(`{"servers":{"x":${toolhive},"x":${toolhive.replace('Fetches', 'Reads')}}}`).dropped).toBe(1)
  })

  it('may be repeated word for word, as while they move from one file to another', () => {
    const { entries, problems } = read(`[${documentText('a')},${documentText('a')}]`)
    expect([entries.length, problems]).toEqual([1, []])
  })

  it('need little in ToolHive format, and everything when strict', () => {
    const text = '{"servers":{"fetch":{"image":"x/y:1"},"bad":{"description":"no image"}}}'
    const lenient = read(text)
    expect(lenient.names).toEqual(['io.github.stacklok/fetch@1.0.0'])
    expect(lenient.problems).toEqual([
      'warning io.github.stacklok/fetch/description: is missing: "MCP server fetch" is shown',
      'dropped bad/image: is required',
    ])
    const strict = read(text, { strict: true })
    expect(strict.names).toEqual([])
    expect(strict.problems).toEqual(
      expect.arrayContaining([
        'warning file/version: is required',
        'dropped fetch/tier: is required',
        'dropped fetch/transport: is required',
      ]),
    )
  })

  it('of other kinds are left out, and said to be', () => {
    const text = `{"servers":{},"groups":[{"name":"g","servers":{"x":${toolhive}}}]}`
    expect(read(text)).toMatchObject({ names: [], problems: [expect.stringMatching(/^warning groups: servers of groups are not listed/)] })
    expect(read('{"data":{"servers":[],"skills":[{}],"plugins":[]}}').problems).toEqual(['warning data/skills: skills are not served'])
  })

  it('are counted', () => {
    const many = `[${[1, 2, 3].map((n) => documentText(`s${n}`)).join()}]`
    expect(read(many, { maxEntries: 3 }).names).toHaveLength(3)
    expect(() => read(many, { maxEntries: 2 })).toThrow(expect.objectContaining({ code: 'source_limit' }))
  })

  it('of several files gather in one place', () => {
    const into = createEntryCollector(10)
    parseRegistryText(`[${documentText('a')}]`, { into, file: 'one.json' })
    parseRegistryText(`[${documentText('a').replace('A server', 'Another')},${documentText('b')},7]`, { into, file: 'two.json' })
    expect(into.entries.map(({ name }) => name)).toEqual(['io.example/a', 'io.example/b'])
    expect(into.problems.map(({ entry }) => entry)).toEqual(['two.json: io.example/a', 'two.json: servers/2'])
  })

  it('give the same in turns, and stop when told', async () => {
    const text = Buffer.from(`[${Array.from({ length: 20_000 }, (_, i) => documentText(`s${i}`)).join(',\n')}]`)
    const { signal } = new AbortController()
    expect((await parseRegistryInTurns(text, {}, signal)).entries).toEqual(parseRegistryText(text).entries)
    await expect(parseRegistryInTurns(text, {}, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough')
  })

  it('never throw but what they may, whatever the file', () => {
    const key = fc.constantFrom(
      'servers',
      'remote_servers',
      'data',
      'server',
      '_meta',
      'name',
      'image',
      'url',
      'version',
      '__proto__',
      'groups',
    )
    const value = fc.letrec((tie) => ({
      node: fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(tie('node')), fc.dictionary(key, tie('node'))),
    })).node
    fc.assert(
      fc.property(value, fc.constantFrom('auto', 'toolhive', 'upstream'), fc.boolean(), (node, format, strict) => {
        try {
          const { entries } = parseRegistryText(JSON.stringify(node), { format, strict })
          for (const entry of entries) expect(JSON.parse(entry.text)).toMatchObject({ name: entry.name })
        } catch (error) {
          expect(error).toMatchObject({ code: 'source_failed' })
        }
      }),
    )
  })
})
