import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CommandPlace, commandPlace, type ServerAccess } from '../../testing/command-place.ts'

/** The commands on objects, as one story that must go the same on every API server. */
export function objectStory(open: () => Promise<{ access: ServerAccess; namespace: string; stop?: () => Promise<void> }>): void {
  let place: CommandPlace
  let namespace: string
  let stop: (() => Promise<void>) | undefined
  beforeAll(async () => {
    const opened = await open()
    namespace = opened.namespace
    stop = opened.stop
    place = await commandPlace(opened.access)
  })
  afterAll(async () => {
    await place?.stop()
    await stop?.()
  })
  const thv = (...args: string[]) => place.thv(...args, '-n', namespace)

  it('apply creates, changes and leaves alone', async () => {
    place.write('servers/a.yaml', `${SERVER('alpha')}---\n# only a comment\n---\n${SERVER('beta')}`)
    place.write('servers/b.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [MAP('one'), MAP('two')] }))
    place.write('servers/notes.txt', 'not a manifest')
    const first = await thv('apply', '-f', 'servers')
    expect(first).toEqual({
      out: [
        'mcpserver.toolhive.stacklok.dev/alpha created',
        'mcpserver.toolhive.stacklok.dev/beta created',
        'configmap/one created',
        'configmap/two created',
        '',
      ].join('\n'),
      err: '',
      error: undefined,
    })
    place.write('servers/a.yaml', `${SERVER('alpha', 'transport: sse')}---\n${SERVER('beta')}`)
    expect((await thv('apply', '-f', 'servers/a.yaml', '-f', 'servers/b.json')).out.split('\n')).toEqual([
      'mcpserver.toolhive.stacklok.dev/alpha configured',
      'mcpserver.toolhive.stacklok.dev/beta unchanged',
      'configmap/one unchanged',
      'configmap/two unchanged',
      '',
    ])
  })

  it('apply tries all and tells what is wrong with its line', async () => {
    place.write(
      'bad.yaml',
      [
        ...['apiVersion: v1', 'kind: ConfigMap', 'metadata:', '  name: fine', '---'],
        ...['apiVersion: toolhive.stacklok.dev/v1beta1', 'kind: MCPServer', 'metadata:', '  name: gamma', 'spec:'],
        ...['  image: example.com/x:1', '  transport: carrier-pigeon', '  nonsense: true', '---'],
        ...['kind: ConfigMap', '---', 'apiVersion: example.com/v1', 'kind: Nothing', 'metadata:', '  name: x', '---'],
        ...['a: [b', ''],
      ].join('\n'),
    )
    const { out, err, error } = await thv('apply', '-f', 'bad.yaml')
    expect(out).toBe('configmap/fine created\n')
    const lines = err.trimEnd().split('\n')
    expect(lines).toEqual([
      'bad.yaml:15: not a Kubernetes object: apiVersion is missing',
      expect.stringMatching(/^bad\.yaml:2[23]: not YAML: /),
      expect.stringMatching(/^bad\.yaml:13: MCPServer .*unknown field spec\.nonsense$/),
      expect.stringMatching(/^bad\.yaml:17: Nothing .*the server has no Nothing of example\.com\/v1/),
    ])
    expect(error).toMatchObject({ code: 'command_incomplete', message: '4 of 5 objects were not applied' })
  })

  it('apply names each wrong field with its line', async () => {
    place.write('bad-value.yaml', SERVER('gamma', 'transport: carrier-pigeon').replace('proxyPort: 8080', 'proxyPort: 808080'))
    const { err, error } = await thv('apply', '-f', 'bad-value.yaml')
    expect(err.trimEnd().split('\n').sort()).toEqual([
      expect.stringMatching(/^bad-value\.yaml:7: MCPServer .*gamma: spec\.transport: Unsupported value: "carrier-pigeon"/),
      expect.stringMatching(/^bad-value\.yaml:8: MCPServer .*gamma: spec\.proxyPort: Invalid value: .*65535/),
    ])
    expect(error).toMatchObject({ code: 'command_incomplete', message: '1 of 1 object was not applied' })
  })

  it('apply says who owns a field, and can take it over', async () => {
    await place.client.apply(
      CONFIG_MAPS,
      { ...MAP('one'), metadata: { name: 'one', namespace }, data: { key: 'theirs' } },
      { fieldManager: 'other', force: true },
    )
    const refused = await thv('apply', '-f', 'servers/b.json')
    expect(refused.err).toMatch(/servers\/b\.json:1: ConfigMap one: .*conflict.*"other".*--force-conflicts takes over the fields/)
    expect((await thv('apply', '-f', 'servers/b.json', '--force-conflicts')).out).toContain('configmap/one configured\n')
  })

  it('get prints the columns of the server', async () => {
    const { out, err } = await thv('get', 'mcpservers')
    const [header = '', ...rows] = out.trimEnd().split('\n')
    expect(header).toMatch(/^NAME +STATUS .*AGE$/)
    expect(rows.map((row) => row.split(' ')[0])).toEqual(['alpha', 'beta'])
    expect(err).toBe('')
    expect((await thv('get', 'mcpserver', 'alpha', '--no-headers')).out).toMatch(/^alpha +.*s\n$/)
    expect((await thv('get', 'MCPServer/alpha', 'cm/two', '-o', 'name')).out).toBe('mcpserver.toolhive.stacklok.dev/alpha\nconfigmap/two\n')
    const both = (await thv('get', 'cm,mcpservers', '-l', 'kept=true', '--show-labels')).out
    expect(both).toMatch(/^NAME +DATA +AGE +LABELS\nconfigmap\/one +1 +\S+ +kept=true\n/)
    const wide = (await thv('get', 'mcpservers', '-o', 'wide')).out.split('\n')[0] ?? ''
    expect(wide.length).toBeGreaterThanOrEqual(header.length)
    const all = (await place.thv('get', 'cm', '-A', '--field-selector', `metadata.namespace=${namespace}`)).out
    expect(all).toMatch(new RegExp(`^NAMESPACE +NAME +DATA +AGE\n(${namespace} .*\n)+$`))
  })

  it('get prints objects', async () => {
    const { out } = await thv('get', 'cm', 'two', '-o', 'json')
    expect(JSON.parse(out)).toMatchObject({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'two', namespace },
      data: { key: 'value' },
    })
    expect(out).not.toContain('managedFields')
    const { out: list } = await thv('get', 'cm', '-l', 'kept=true', '-o', 'yaml')
    expect(list).toMatch(/^apiVersion: v1\nkind: List\nitems:\n {2}- apiVersion: v1\n/)
  })

  it('get says what is not there', async () => {
    expect((await thv('get', 'secrets')).err).toBe(`No resources found in ${namespace} namespace.\n`)
    expect((await thv('get', 'cm', 'missing')).error).toMatchObject({ code: 'kube_status', message: 'configmaps "missing" not found' })
    expect((await thv('get', 'mcpserverz')).error).toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/^the server has no resource type "mcpserverz"\. Did you mean .*"mcpservers"/),
    })
  })

  it('describe tells about an object and hides secrets', async () => {
    const { out } = await thv('describe', 'mcpserver', 'alpha')
    expect(out).toMatch(/^Name: +alpha\nNamespace: +\S+\nKind: +MCPServer \(toolhive\.stacklok\.dev\/v1beta1\)\nCreated: /)
    expect(out).toContain('\nSpec:\n  image: example.com/x:1\n')
    expect(out).toContain('\nEvents: none\n')
    const aged = /\(.* ago\)/g
    expect((await thv('describe', 'alpha')).out.replace(aged, '')).toBe(out.replace(aged, ''))
    expect((await thv('describe', 'alpho')).error).toMatchObject({ message: expect.stringContaining('no resource type "alpho"') })
    place.write('secret.yaml', 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: hidden\nstringData:\n  password: hunter2\n')
    await thv('apply', '-f', 'secret.yaml')
    const secret = (await thv('describe', 'secret', 'hidden')).out
    expect(secret).toContain('password: 7 bytes')
    expect(secret).not.toContain(Buffer.from('hunter2').toString('base64'))
  })

  it('describe draws the steps of a composite tool', async () => {
    const steps = [
      { id: 'find', tool: 'orders.find' },
      { id: 'track', tool: 'parcels.track', dependsOn: ['find'], arguments: { code: '{{.steps.find.output.parcel}}' } },
    ]
    const spec = { name: 'order', description: 'Orders.', steps }
    place.write(
      'tool.json',
      JSON.stringify({
        apiVersion: 'toolhive.stacklok.dev/v1beta1',
        kind: 'VirtualMCPCompositeToolDefinition',
        metadata: { name: 'order' },
        spec,
      }),
    )
    await thv('apply', '-f', 'tool.json')
    expect((await thv('describe', 'compositetool', 'order')).out).toContain(
      [
        'Steps:',
        '  1. one step',
        '     find: call orders.find {}',
        '  2. one step',
        '     track: call parcels.track {"code":"{{.steps.find.output.parcel}}"}',
        '       after find',
      ].join('\n'),
    )
    await thv('delete', 'compositetool', 'order')
  })

  it('ls lists the servers of all kinds, rm deletes them by name', async () => {
    place.write('short.yaml', `${SERVER('short')}---\n${REMOTE('far')}---\n${REMOTE('short')}`)
    await thv('apply', '-f', 'short.yaml')
    const rows = (await thv('ls')).out.trimEnd().split('\n')
    expect(rows[0]).toMatch(/^NAME +KIND +STATUS +REASON +URL +AGE$/)
    expect(rows.slice(1).map((row) => row.split(/ +/).slice(0, 2).join(' '))).toEqual([
      'alpha MCPServer',
      'beta MCPServer',
      'far MCPRemoteProxy',
      'short MCPServer',
      'short MCPRemoteProxy',
    ])
    expect((await thv('list', '--no-headers')).out).toMatch(/^alpha /)
    expect((await place.thv('ls', '-A')).out).toMatch(new RegExp(`^NAMESPACE +NAME [^]*^${namespace} +far +MCPRemoteProxy `, 'm'))
    expect((await thv('rm', 'short')).error).toMatchObject({
      code: 'usage',
      message: '"short" is ambiguous: choose mcpservers.toolhive.stacklok.dev/short or mcpremoteproxies.toolhive.stacklok.dev/short',
    })
    expect((await thv('rm', 'far', 'missing')).error).toMatchObject({
      code: 'usage',
      message: `no MCP server "missing" in namespace ${namespace}; "thv ls" lists them`,
    })
    expect(await thv('rm', 'far', 'mcpserver/short', 'missing', '--ignore-not-found')).toMatchObject({
      out: 'mcpremoteproxy.toolhive.stacklok.dev/far deleted\nmcpserver.toolhive.stacklok.dev/short deleted\n',
      error: undefined,
    })
    expect((await thv('rm', 'short')).out).toBe('mcpremoteproxy.toolhive.stacklok.dev/short deleted\n')
  })

  it('delete takes objects away, by name and by file', async () => {
    expect(await thv('delete', 'cm', 'one', 'missing')).toMatchObject({
      out: 'configmap/one deleted\n',
      err: 'configmap/missing: configmaps "missing" not found\n',
      error: { code: 'command_incomplete', message: '1 of 2 objects were not deleted' },
    })
    expect((await thv('delete', '-f', 'servers', '--ignore-not-found')).out.split('\n')).toEqual([
      'configmap/two deleted',
      'mcpserver.toolhive.stacklok.dev/beta deleted',
      'mcpserver.toolhive.stacklok.dev/alpha deleted',
      '',
    ])
    expect((await thv('get', 'mcpservers')).err).toMatch(/^No resources found/)
    expect((await thv('delete', 'cm')).error).toMatchObject({
      code: 'usage',
      message: 'specify the names of the configmaps to delete, or --all',
    })
    expect((await thv('delete', 'secret', '--all')).out).toBe('secret/hidden deleted\n')
  })

  it('delete says what holds an object', async () => {
    const held = { ...MAP('held'), metadata: { name: 'held', namespace, finalizers: ['example.com/held'] } }
    await place.client.create(CONFIG_MAPS, held)
    const { err, error } = await thv('delete', 'cm', 'held', '--timeout', '100ms')
    expect(err).toBe('configmap/held: still exists after 100ms (held by example.com/held)\n')
    expect(error).toMatchObject({ code: 'command_incomplete' })
    await place.client.patch(CONFIG_MAPS, { namespace, name: 'held' }, { kind: 'merge', body: { metadata: { finalizers: null } } })
  })
}

const CONFIG_MAPS = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true } as const

function MAP(name: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { kept: 'true' } }, data: { key: 'value' } }
}

function REMOTE(name: string): string {
  return `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPRemoteProxy
metadata:
  name: ${name}
spec:
  remoteUrl: https://mcp.example.com/mcp
`
}

function SERVER(name: string, transport = 'transport: stdio'): string {
  return `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata:
  name: ${name}
spec:
  image: example.com/x:1
  ${transport}
  proxyPort: 8080
`
}
