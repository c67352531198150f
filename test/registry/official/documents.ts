type Document = Record<string, unknown>

const input = { description: 'd', isRequired: true, format: 'string', isSecret: false, default: 'x', placeholder: 'p', choices: ['x', 'y'] }

/** A document with everything that the standard names. */
const whole: Document = {
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.github.example/whole',
  description: 'Everything in one',
  title: 'Whole',
  version: '1.2.3-rc.1+b5',
  websiteUrl: 'https://example.com/whole',
  repository: { url: 'https://github.com/example/whole', source: 'github', id: '1', subfolder: 'src/whole' },
  icons: [{ src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48', 'any'], theme: 'dark' }],
  packages: [
    {
      registryType: 'npm',
      registryBaseUrl: 'https://packages.example.com',
      identifier: '@example/whole',
      version: '1.2.3',
      fileSha256: 'a'.repeat(64),
      runtimeHint: 'npx',
      transport: { type: 'stdio' },
      runtimeArguments: [{ type: 'named', name: '--port', value: '{port}', isRepeated: true, variables: { port: input } }],
      packageArguments: [{ type: 'positional', valueHint: 'file', ...input }],
      environmentVariables: [{ name: 'TOKEN', ...input }],
    },
    {
      registryType: 'oci',
      identifier: 'ghcr.io/example/whole:1',
      transport: { type: 'streamable-http', url: 'http://localhost:8080/mcp', headers: [{ name: 'X-A', value: 'b' }] },
    },
  ],
  remotes: [
    { type: 'streamable-http', url: 'https://{region}.example.com/mcp', variables: { region: { default: 'eu' } } },
    { type: 'sse', url: 'https://example.com/sse', headers: [{ name: 'Authorization', ...input }] },
  ],
  _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { any: 'thing' }, 'com.example': { more: 1 } },
}

const least: Document = { name: 'a.b/c', description: 'd', version: '1' }

/** Good by the schema of that date: members that came or changed later are left out. */
export function soundDocuments(date: string): Document[] {
  const $schema = `https://static.modelcontextprotocol.io/schemas/${date}/server.schema.json`
  const plain = { ...least, $schema }
  return date === '2025-12-11' ? [{ ...whole, $schema }, plain, least] : [plain]
}

/** One thing wrong with each; the schema need not see all of them. */
export function* brokenDocuments(): Generator<[what: string, document: unknown]> {
  for (const value of [null, [], 'text', 1, true]) yield [`the document is ${JSON.stringify(value)}`, value]
  for (const name of ['name', 'description', 'version']) {
    const { [name]: _, ...rest } = least
    yield [`no ${name}`, rest]
  }
  for (const path of placesIn(whole)) {
    for (const value of [17, null, [], {}, '']) yield [`${path.join('/')} is ${JSON.stringify(value)}`, withValue(whole, path, value)]
  }
  const long: [string, string][] = [
    ['name', `a/${'b'.repeat(199)}`],
    ['description', 'd'.repeat(101)],
    ['title', 't'.repeat(101)],
    ['version', 'v'.repeat(256)],
    ['name', 'no-slash'],
    ['name', 'a b/c'],
    ['name', 'ä/c'],
  ]
  for (const [name, value] of long) yield [`${name} is ${value.slice(0, 12)}…`, { ...least, [name]: value }]
}

type Path = readonly (string | number)[]

function* placesIn(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    // Publishers choose the content of their own blocks.
    if (path[0] === '_meta' && path.length > 1) continue
    const place = [...path, Array.isArray(value) ? Number(name) : name]
    yield place
    yield* placesIn(member, place)
  }
}

function withValue(document: unknown, [name, ...rest]: Path, value: unknown): unknown {
  if (name === undefined) return value
  if (Array.isArray(document)) return document.map((item, i) => (i === name ? withValue(item, rest, value) : item))
  const object = document as Document
  return { ...object, [name]: withValue(object[String(name)], rest, value) }
}
