import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from './catalog-entry.ts'
import { checkServerDocument, type DocumentLevel } from './server-document.ts'

const schemaUrl = (id: string) => `https://static.modelcontextprotocol.io/schemas/${id}/server.schema.json`

function weather(): Record<string, unknown> {
  return {
    $schema: schemaUrl('2025-12-11'),
    name: 'io.github.harbour-labs/tide-tables',
    title: 'Tide Tables',
    description: 'Tide times and heights for harbours around the world',
    version: '2.3.1',
    websiteUrl: 'https://harbour-labs.example/tides',
    repository: { url: 'https://github.com/harbour-labs/mcp', source: 'github', id: 'r-118', subfolder: 'servers/tides' },
    icons: [{ src: 'https://harbour-labs.example/icon.svg', mimeType: 'image/svg+xml', sizes: ['any', '48x48'], theme: 'light' }],
    packages: [
      {
        registryType: 'npm',
        registryBaseUrl: 'https://packages.example.com',
        identifier: '@harbour-labs/tides-mcp',
        version: '2.3.1',
        fileSha256: 'ab'.repeat(32),
        runtimeHint: 'npx',
        runtimeArguments: [{ type: 'named', name: '--loglevel', value: 'error' }],
        packageArguments: [
          { type: 'positional', valueHint: 'data_dir', format: 'filepath', isRepeated: false },
          { type: 'named', name: '--port', default: '8080', variables: { p: { description: 'a port', choices: ['8080', '9090'] } } },
        ],
        environmentVariables: [{ name: 'TIDES_TOKEN', isRequired: true, isSecret: true, placeholder: 'tt_…' }],
        transport: { type: 'streamable-http', url: 'http://localhost:{port}/{data_dir}/{TIDES_TOKEN}' },
      },
      { registryType: 'oci', identifier: 'ghcr.io/harbour-labs/tides:2.3.1', transport: { type: 'stdio' } },
    ],
    remotes: [
      {
        type: 'sse',
        url: 'https://{region}.harbour-labs.example/sse',
        headers: [{ name: 'Authorization', value: 'Bearer {key}', variables: { key: { isSecret: true } } }],
        variables: { region: { default: 'eu', choices: ['eu', 'us'] } },
      },
    ],
    _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { tool: 'ci', build: { commit: 'c0ffee' } } },
  }
}

/** The problems after one change at a JSON pointer; `undefined` removes. */
function problemsAfter(pointer: string, value: unknown, level: DocumentLevel = 'semantic'): string[] {
  const document = weather()
  const tokens = pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = tokens.pop() ?? ''
  let holder = document
  for (const token of tokens) holder = holder[token] as Record<string, unknown>
  if (value === undefined) delete holder[last]
  else holder[last] = value
  const check = checkServerDocument(document, { level })
  return check.ok ? [] : check.problems.map((problem) => `${problem.pointer} ${problem.message}`)
}

describe('a right document', () => {
  it.each(['schema', 'semantic', 'official'] as const)('passes at level %s and comes back as the same object', (level) => {
    const document = { ...weather(), 'x-unknown': { kept: [1, null] } }
    const before = JSON.stringify(document)
    const check = checkServerDocument(document, { level })
    expect(check).toEqual({ ok: true, document })
    expect(check.ok && check.document).toBe(document)
    expect(JSON.stringify(document)).toBe(before)
  })

  it('needs no packages, remotes or $schema', () => {
    expect(checkServerDocument({ name: 'a/b', description: 'd', version: 'main' }).ok).toBe(true)
  })
})

describe('each rule of the schema', () => {
  it.each<[string, unknown, string]>([
    ['/name', undefined, 'is required'],
    ['/name', 7, 'must be a string'],
    ['/name', '', 'server name cannot be empty'],
    ['/name', 'tides', "server name must be in format 'dns-namespace/name' (e.g., 'com.example.api/server')"],
    ['/name', 'a/b/c', "server name must contain exactly one '/' separator"],
    ['/name', '/b2', 'namespace part cannot be empty'],
    ['/name', 'a2/', 'name part cannot be empty'],
    ['/name', `a/${'b'.repeat(199)}`, 'server name exceeds maximum length of 200 characters'],
    ['/name', '-a/b', 'namespace part must consist of letters, digits, dots and hyphens, with a letter or digit at both ends'],
    ['/name', 'a_b/c', 'namespace part must consist of letters, digits, dots and hyphens, with a letter or digit at both ends'],
    ['/name', 'a/b_', 'name part must consist of letters, digits, dots, underscores and hyphens, with a letter or digit at both ends'],
    ['/description', undefined, 'is required'],
    ['/description', '', 'must not be empty'],
    ['/description', 'd'.repeat(101), 'must be at most 100 characters long'],
    ['/version', undefined, 'is required'],
    ['/version', '', 'must not be empty'],
    ['/version', 'latest', 'must be a specific version, not "latest"'],
    ['/version', '^1.2.3', 'must be a specific version, not the range "^1.2.3"'],
    ['/version', 'v'.repeat(256), 'must be at most 255 characters long'],
    ['/version', '1.0\u0000', 'must not contain control characters or halves of a character'],
    ['/version', '1.0\ud800', 'must not contain control characters or halves of a character'],
    ['/version', '1\n2', 'must not contain control characters or halves of a character'],
    ['/title', '', 'must not be empty'],
    ['/title', 't'.repeat(101), 'must be at most 100 characters long'],
    ['/$schema', 'https://example.com/s.json', 'must be the address of a known server.json schema, not "https://example.com/s.json"'],
    ['/title', 'Bank\u202egnp.exe', 'must not contain control or bidirectional characters'],
    ['/title', 'Bank\u2066', 'must not contain control or bidirectional characters'],
    ['/title', 'Bank\u200f', 'must not contain control or bidirectional characters'],
    ['/title', 'a\u001b[2J', 'must not contain control or bidirectional characters'],
    ['/title', 'a\nb', 'must not contain control or bidirectional characters'],
    [
      '/name',
      'a/b\u202ec',
      'name part must consist of letters, digits, dots, underscores and hyphens, with a letter or digit at both ends',
    ],
    ['/name', 'a/b\nc', 'name part must consist of letters, digits, dots, underscores and hyphens, with a letter or digit at both ends'],
    ['/websiteUrl', 'not a uri', 'must be an absolute URI'],
    ['/websiteUrl', 'javascript:alert(1)', 'must be an http or https URL'],
    ['/websiteUrl', 'data:text/html,x', 'must be an http or https URL'],
    ['/websiteUrl', 'https:evil', 'must be an http or https URL'],
    ['/repository/url', 'file:///etc/passwd', 'must be an http or https URL'],
    ['/repository/url', 'JavaScript://x/%0aalert(1)', 'must be an http or https URL'],
    ['/repository', 'https://github.com/a/b', 'must be an object'],
    ['/repository/url', undefined, 'is required'],
    ['/repository/source', undefined, 'is required'],
    ['/icons', {}, 'must be an array'],
    ['/icons/0/src', undefined, 'is required'],
    ['/icons/0/src', `https://h/${'i'.repeat(250)}`, 'must be at most 255 characters long'],
    ['/icons/0/mimeType', 'image/gif', 'must be one of image/png, image/jpeg, image/jpg, image/svg+xml, image/webp, not "image/gif"'],
    ['/icons/0/sizes/1', '48', 'must be like 48x48, or any'],
    ['/icons/0/theme', 'blue', 'must be one of light, dark, not "blue"'],
    ['/packages/0', 'npm', 'must be an object'],
    ['/packages/0/registryType', undefined, 'is required'],
    ['/packages/0/identifier', undefined, 'is required'],
    ['/packages/1/transport', undefined, 'is required'],
    ['/packages/1/transport/type', 'http', 'must be one of stdio, streamable-http, sse, not "http"'],
    ['/packages/0/transport/url', undefined, 'is required'],
    ['/packages/0/transport/url', 'localhost:80', 'must begin with http:// or https:// and have no spaces'],
    ['/packages/0/version', 'latest', 'must be a specific version, not "latest"'],
    ['/packages/0/version', '1.x', 'must be a specific version, not the range "1.x"'],
    ['/packages/0/fileSha256', 'AB'.repeat(32), 'must be 64 lower-case hexadecimal digits'],
    ['/packages/0/registryBaseUrl', 'npm', 'must be an absolute URI'],
    ['/packages/0/runtimeArguments/0/type', 'flag', 'must be one of positional, named, not "flag"'],
    ['/packages/0/runtimeArguments/0/name', undefined, 'is required'],
    ['/packages/0/packageArguments/0/isRepeated', 'no', 'must be true or false'],
    ['/packages/0/packageArguments/0/format', 'path', 'must be one of string, number, boolean, filepath, not "path"'],
    ['/packages/0/packageArguments/1/variables/p/choices/0', 8080, 'must be a string'],
    ['/packages/0/environmentVariables/0/name', undefined, 'is required'],
    ['/packages/0/environmentVariables/0/default', 1, 'must be a string'],
    ['/remotes/0/type', 'stdio', 'must be one of streamable-http, sse, not "stdio"'],
    ['/remotes/0/url', 'ftp://h/{region}', 'must begin with http:// or https:// and have no spaces'],
    ['/remotes/0/headers/0/name', undefined, 'is required'],
    ['/remotes/0/variables/region', 'eu', 'must be an object'],
    ['/_meta', [], 'must be an object'],
    ['/_meta/io.modelcontextprotocol.registry~1publisher-provided', 'x', 'must be an object'],
  ])('%s = %j', (pointer, value, message) => {
    expect(problemsAfter(pointer, value, 'schema')).toEqual([`${pointer} ${message}`])
  })

  it('a positional argument needs a hint or a value', () => {
    const place = '/packages/0/packageArguments/0'
    expect(problemsAfter(place, { type: 'positional' }, 'schema')).toEqual([`${place} a positional argument needs valueHint or value`])
    expect(problemsAfter(place, { type: 'positional', value: '' }, 'schema')).toEqual([])
  })

  it('counts code points, not units', () => {
    expect(problemsAfter('/description', '🌊'.repeat(100))).toEqual([])
    expect(problemsAfter('/description', '🌊'.repeat(101))).toEqual(['/description must be at most 100 characters long'])
  })
})

describe('versions', () => {
  it.each(['^1.2.3', '~1', '>=1.0', '=1.0', '<2', '1.2.3 - 2.0.0', '1.2 || 1.3', '1.x', '1.2.*', '*', 'v1.X', '1.0 <2.0'])(
    '%s is a range',
    (version) => {
      expect(problemsAfter('/version', version)).toEqual([`/version must be a specific version, not the range ${JSON.stringify(version)}`])
    },
  )

  it.each(['1', '1.2.3-x.1', '2024-01-15', 'main', 'release x', 'x', '1.0.0+build-7', 'a=b'])('%s is a version', (version) => {
    expect(problemsAfter('/version', version)).toEqual([])
  })
})

describe('members that depend on each other', () => {
  it.each<[string, unknown, string]>([
    ['/title', '  ', '/title must not be blank'],
    ['/repository/subfolder', '../x', '/repository/subfolder must be a relative path inside the repository'],
    ['/repository/subfolder', '/x', '/repository/subfolder must be a relative path inside the repository'],
    ['/packages/0/identifier', 'a b', '/packages/0/identifier must not contain spaces'],
    ['/packages/0/version', undefined, '/packages/0/version is required for npm'],
    ['/packages/1/registryType', 'mcpb', '/packages/1/fileSha256 is required for mcpb'],
    ['/packages/1/transport/url', 'http://localhost', '/packages/1/transport/url stdio has no url'],
    [
      '/packages/0/transport/url',
      'http://h:{nope}',
      '/packages/0/transport/url {nope} is not declared by an argument or environment variable of the package',
    ],
    [
      '/packages/0/runtimeArguments/0/name',
      '--level <n>',
      "/packages/0/runtimeArguments/0/name must be the flag alone, without space, '<', '>' or '$'",
    ],
    ['/packages/0/runtimeArguments/0/value', '--loglevel=x', '/packages/0/runtimeArguments/0/value must not repeat the name of the flag'],
    ['/remotes/0/variables', undefined, '/remotes/0/url {region} is not declared in variables'],
    ['/remotes/0/url', 'https://exa mple', '/remotes/0/url must begin with http:// or https:// and have no spaces'],
    ['/remotes/0/url', 'https://[::/x', '/remotes/0/url "https://[::/x" is not a URL'],
  ])('%s = %j', (pointer, value, problem) => {
    expect(problemsAfter(pointer, value, 'semantic')).toContain(problem)
    if (!problem.includes('must begin')) expect(problemsAfter(pointer, value, 'schema')).toEqual([])
  })
})

describe('rules of the public registry only', () => {
  it.each<[string, unknown, string]>([
    ['/$schema', undefined, '/$schema is required'],
    ['/name', 'a/tides', '/name both parts must be at least 2 characters long'],
    ['/websiteUrl', 'http://h.example', '/websiteUrl must use https'],
    ['/icons/0/src', 'http://h.example/i', '/icons/0/src must use https'],
    ['/repository/url', 'https://git.example/a/b', '/repository/url must be a repository on github.com or gitlab.com'],
    ['/packages/1/registryType', 'snap', '/packages/1/registryType must be one of npm, pypi, oci, nuget, mcpb, cargo, not "snap"'],
    [
      '/packages/1/registryBaseUrl',
      'https://ghcr.io',
      '/packages/1/registryBaseUrl is not used for oci: the identifier is the whole address',
    ],
    ['/remotes/0/url', 'http://{region}.example/sse', '/remotes/0/url must use https'],
    ['/remotes/0/url', 'https://app.localhost/{region}', '/remotes/0/url must not point to the local machine'],
    ['/remotes/0/url', 'https://127.0.0.1/{region}', '/remotes/0/url must not point to the local machine'],
  ])('%s = %j', (pointer, value, problem) => {
    expect(problemsAfter(pointer, value, 'official')).toEqual([problem])
    expect(problemsAfter(pointer, value, 'semantic')).toEqual([])
  })
})

it('limits the size of the publisher-provided block, more so in public', () => {
  const place = '/_meta/io.modelcontextprotocol.registry~1publisher-provided'
  const block = { a: 'x'.repeat(262_000), b: 'x'.repeat(262) }
  expect(problemsAfter(place, block, 'schema')).toEqual([`${place} must be at most 262144 bytes of JSON, not 262277`])
  const small = { a: 'x'.repeat(4_090) }
  expect(problemsAfter(place, small, 'official')).toEqual([`${place} must be at most 4096 bytes of JSON, not 4098`])
  expect(problemsAfter(place, small, 'semantic')).toEqual([])
})

describe('schema versions', () => {
  const base = { name: 'com.example/old', description: 'An old one', version: '1.0.0' }

  it('2025-07-09 is written in snake case and asks for the version of a package', () => {
    const pack = {
      registry_type: 'npm',
      identifier: 'old',
      environment_variables: [{ name: 'A', is_secret: 'yes' }],
      transport: { type: 'stdio' },
    }
    const check = checkServerDocument({ ...base, $schema: schemaUrl('2025-07-09'), packages: [pack] })
    expect(check).toEqual({
      ok: false,
      problems: [
        { pointer: '/packages/0/version', message: 'is required' },
        { pointer: '/packages/0/environment_variables/0/is_secret', message: 'must be true or false' },
      ],
    })
  })

  it.each([
    ['2025-09-29', false],
    ['2025-10-11', true],
    ['2025-10-17', true],
    ['2025-12-11', true],
    ['draft', true],
  ])('%s: an image without package version passes: %s', (id, passes) => {
    const packages = [{ registryType: 'oci', identifier: 'ghcr.io/a/b:1', transport: { type: 'stdio' } }]
    expect(checkServerDocument({ ...base, $schema: schemaUrl(id), packages }).ok).toBe(passes)
  })

  it.each([
    ['2025-10-17', true],
    ['2025-12-11', false],
    ['draft', true],
  ])('%s: a URL that begins with a template passes: %s', (id, passes) => {
    const remotes = [{ type: 'streamable-http', url: '{base}/mcp', variables: { base: {} } }]
    expect(checkServerDocument({ ...base, $schema: schemaUrl(id), remotes }).ok).toBe(passes)
  })

  it('an sse URL had to be a URI before it had to begin with http', () => {
    const check = checkServerDocument(
      { ...base, $schema: schemaUrl('2025-10-17'), remotes: [{ type: 'sse', url: 'not one' }] },
      { level: 'schema' },
    )
    expect(check).toEqual({ ok: false, problems: [{ pointer: '/remotes/0/url', message: 'must be an absolute URI' }] })
  })

  it('status was a member until 2025-09-16, and is unknown since', () => {
    const withStatus = (id: string) => checkServerDocument({ ...base, status: 'gone', $schema: schemaUrl(id) }).ok
    expect(['2025-07-09', '2025-09-16', '2025-09-29'].map(withStatus)).toEqual([false, false, true])
  })
})

describe('hostile input', () => {
  const base = { name: 'a/b', description: 'd', version: '1' }

  it('reports all problems at once, up to a hundred', () => {
    const check = checkServerDocument({ name: 1, version: [], packages: [{}], remotes: [3] })
    expect(!check.ok && check.problems.map((problem) => problem.pointer)).toEqual([
      '/name',
      '/description',
      '/version',
      '/packages/0/registryType',
      '/packages/0/identifier',
      '/packages/0/transport',
      '/remotes/0',
    ])
    const many = checkServerDocument({ ...base, packages: Array.from({ length: 5_000 }, () => 1) })
    expect(!many.ok && many.problems.length).toBe(101)
  })

  it.each<[string, () => unknown, string]>([
    ['nesting', () => JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`), 'is nested deeper than 64 levels'],
    [
      'nested members',
      () => ({ ...base, x: JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) }),
      'is nested deeper than 64 levels',
    ],
    ['a long string', () => ({ ...base, x: 'x'.repeat(262_145) }), 'is longer than 262144 characters'],
    ['many strings', () => ({ ...base, x: Array.from({ length: 10 }, () => 'x'.repeat(200_000)) }), 'is larger than 1048576 characters'],
    ['many values', () => ({ ...base, x: new Array(60_000).fill(0) }), 'makes more than 50000 values'],
    ['a long name', () => ({ ...base, ['n'.repeat(2_000)]: 1 }), 'has a member name longer than 1024 characters'],
    ['undefined', () => undefined, 'is not JSON'],
    ['a date', () => ({ ...base, x: new Date(0) }), 'is not JSON'],
    ['not a number', () => ({ ...base, x: Number.NaN }), 'is not JSON'],
    ['a list', () => [base], 'must be an object'],
  ])('%s', (_, make, message) => {
    const check = checkServerDocument(make())
    expect(!check.ok && check.problems.map((problem) => problem.message)).toEqual([message])
  })

  it('a circle ends at the depth limit', () => {
    const circle: Record<string, unknown> = { ...base }
    circle['self'] = circle
    expect(checkServerDocument(circle)).toEqual({ ok: false, problems: [{ pointer: '', message: 'is nested deeper than 64 levels' }] })
  })

  it('prototype names are names like any other', () => {
    const inherited = JSON.parse('{"__proto__":{"name":"a/b","description":"d","version":"1"}}')
    expect(!checkServerDocument(inherited).ok).toBe(true)
    const text =
      '{"name":"a/b","description":"d","version":"1","__proto__":{"x":1},"constructor":2,"remotes":[{"type":"sse","url":"https://h/{__proto__}","variables":{"__proto__":{}}}]}'
    const check = checkServerDocument(JSON.parse(text))
    expect(check.ok && JSON.stringify(check.document)).toBe(text)
  })

  it('never throws, and accepts only what it can give back whole', () => {
    const near = fc.record(
      {
        name: fc.oneof(fc.constant<Json>('a/b'), fc.jsonValue() as fc.Arbitrary<Json>),
        description: fc.oneof(fc.constant<Json>('d'), fc.jsonValue() as fc.Arbitrary<Json>),
        version: fc.oneof(fc.constant<Json>('1.0.0'), fc.jsonValue() as fc.Arbitrary<Json>),
        packages: fc.jsonValue() as fc.Arbitrary<Json>,
        remotes: fc.array(fc.dictionary(fc.constantFrom('type', 'url', 'headers', 'variables'), fc.jsonValue() as fc.Arbitrary<Json>)),
        _meta: fc.jsonValue() as fc.Arbitrary<Json>,
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(near, (value) => {
        const before = JSON.stringify(value)
        const check = checkServerDocument(value)
        if (check.ok) expect(JSON.stringify(check.document)).toBe(before)
        else expect(check.problems.length).toBeGreaterThan(0)
      }),
    )
  })
})
