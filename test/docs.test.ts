import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KINDS } from '@thv/resources/kinds/kinds'
import { MCPServerEntryCondition, MCPServerEntryPhase, MCPServerEntryReason } from '@thv/resources/kinds/mcp-server-entry/constants'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

/* Promises of the pages: links lead somewhere, files that are named exist, and pages say what they were written for. */

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const markdownIn = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
const PAGES = ['README.md', 'CONTRIBUTING.md', ...markdownIn('docs'), ...markdownIn('deploy')]

describe('pages', () => {
  it('are found', () => {
    expect(PAGES.length).toBeGreaterThan(12)
  })

  it.each(PAGES)('%s: every link leads somewhere', (page) => {
    expect(brokenLinks(page)).toEqual([])
  })

  it.each(PAGES)('%s: every file of the repository that it names exists', (page) => {
    const text = read(page).replaceAll(/https?:\/\/\S+/g, '') // addresses of other sites have such folders too
    const named = [...text.matchAll(/\b((?:deploy|docs|packages|apps|scripts|test)\/[\w./-]*\w)/g)].map((match) => match[1] ?? '')
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })
})

describe('pages about MCPRegistry', () => {
  it('explain the registry system: shapes, selection, syncs, size, images [002-294]', () => {
    const page = read('docs/architecture/registry-system.md')
    const headings = [...page.matchAll(/^## (.+)$/gm)].map((match) => match[1])
    const wanted = ['Shapes', 'ConfigMaps chosen by label', 'Syncs of `spec.source`', 'Size', 'Images of MCPServers']
    expect(headings).toEqual(expect.arrayContaining(wanted))
    for (const shape of ['spec.registries[]', 'spec.source', 'spec.configYAML']) expect(page).toContain(`| \`${shape}\` |`)
    expect(read('docs/how-to/kubernetes-registry.md')).toContain('(../architecture/registry-system.md)')
  })

  it('have every field of configMapSelector and its default in the reference [003-060]', () => {
    const page = read('docs/reference/resources.md')
    for (const field of ['matchLabels', 'matchExpressions', 'key', 'conflictStrategy'])
      expect(page).toMatch(new RegExp(`\\| \`registries\\[\\]\\.configMapSelector\\.${field}\` \\|`))
    expect(page).toMatch(/configMapSelector\.key` .*registry\.json/)
  })
})

describe('pages about the authorization server', () => {
  it('say where its records lie, and the architecture page links there [002-096]', () => {
    const page = read('docs/reference/auth-server-storage.md')
    for (const kind of ['memory', 'redis']) expect(page).toContain(`\`${kind}\``)
    for (const record of ['authcode', 'refresh', 'pending', 'upstream']) expect(page).toMatch(new RegExp(`\\| .*\`${record}\`.* \\|`))
    expect(read('docs/architecture/README.md')).toContain('(../reference/auth-server-storage.md)')
  })

  it('create exactly the Secrets that the example of many tokens names, and apply that example', () => {
    const file = 'deploy/examples/operator/external-auth/one-login-many-tokens.yaml'
    const commands = [...read('docs/how-to/one-person-many-saas-tokens.md').matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
      block.trim().split('\n'),
    )
    const created = commands.flatMap((command) => {
      const [, name, key] = /^kubectl create secret generic (\S+) --from-literal=([^=]+)=/.exec(command) ?? []
      return name === undefined ? [] : [`${name} ${key}`]
    })
    const refs = [...read(file).matchAll(/clientSecretRef:\n\s+name: (\S+)\n\s+key: (\S+)/g)].map(([, name, key]) => `${name} ${key}`)
    expect(refs.length).toBeGreaterThan(1)
    expect(created.toSorted()).toEqual(refs.toSorted())
    expect(commands).toContain(`kubectl apply -f ${file}`)
  })
})

describe('docs/how-to/install-the-operator.md', () => {
  it('names every verb that changes Secrets, and as one that cannot be given away none that the operator holds', () => {
    const page = read('docs/how-to/install-the-operator.md')
    const objects = parseAllDocuments(read('deploy/manifests/operator.yaml')).map((document) => document.toJS() as Granting | null)
    const rules = objects.flatMap((object) => (object?.kind === 'ClusterRole' ? (object.rules ?? []) : []))
    const held = rules.filter(({ resources = [] }) => resources.includes('secrets')).flatMap(({ verbs }) => verbs)
    expect(held).toContain('create')
    for (const verb of ['update', 'patch', 'delete'])
      expect([verb, page.includes(`\`${verb}\` on Secrets`)]).toEqual([verb, held.includes(verb)])
    expect([page.includes('such as deleting Secrets'), held.includes('delete')]).toEqual([true, false])
  })
})

interface Granting {
  readonly kind: string
  readonly rules?: readonly { readonly resources?: readonly string[]; readonly verbs: readonly string[] }[]
}

describe('docs/reference/remote-servers.md', () => {
  const page = read('docs/reference/remote-servers.md')

  it('compares the two kinds in every respect that a choice depends on [004-029]', () => {
    const rows = [...page.matchAll(/^\| ([^|]+) \| [^|]+ \| [^|]+ \|$/gm)].map((match) => match[1])
    const respects = [
      'who connects to the remote server',
      'incoming authentication',
      'outgoing authentication',
      'own certificates (`caBundleRef`)',
      'forwarded headers (`headerForward`)',
      'tools shown',
      'cost of the tenth',
    ]
    expect(rows).toEqual(expect.arrayContaining(respects))
    expect(page).toContain('## Which one')
  })

  it('tells the three kinds apart whose names are easily confused [004-053]', () => {
    const rows = [...page.matchAll(/^\| (MCPServer|MCPRemoteProxy|MCPServerEntry) \| (.+) \| .+ \|$/gm)].map((match) => [
      match[1],
      match[2],
    ])
    expect(rows.map(([kind]) => kind)).toEqual(['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'])
    expect(new Set(rows.map(([, place]) => place?.startsWith('elsewhere')))).toEqual(new Set([false, true]))
    expect(page).toContain('An entry is for remote servers only, although its name does not say so.')
  })

  it('says that entries take no toolConfigRef and what to use instead [004-036]', () => {
    const [, migration = ''] = page.split('## From MCPRemoteProxy to MCPServerEntry')
    expect(migration).toContain('**`toolConfigRef` has no counterpart on an entry.**')
    expect(migration).toContain('aggregation.tools[]')
  })

  it('names purpose, every field, phase, condition and reason of an entry, with an example [004-024]', () => {
    const words = [MCPServerEntryPhase, MCPServerEntryCondition].flatMap((constants) => Object.values<string>(constants))
    const bad = Object.values<string>(MCPServerEntryReason).filter((reason) => /Not(Found|Ready|Supported)$|Invalid$/.test(reason))
    expect(bad.length).toBeGreaterThan(8)
    expect([...words, ...bad].filter((word) => !page.includes(`\`${word}\``))).toEqual([])
    expect(page).toMatch(/## An entry\n\n```yaml\napiVersion: toolhive\.stacklok\.dev\/v1beta1\nkind: MCPServerEntry/)
    expect(page).toContain('(resources.md#mcpserverentry)')

    const [, section = ''] = read('docs/reference/resources.md').split('\n## MCPServerEntry\n')
    const reference = section.split('\n## ')[0] ?? ''
    expect(reference).toContain('A remote MCP server that a VirtualMCPServer reaches directly. Creates no workload.')
    const described = [...reference.matchAll(/^\| ~{0,2}`([^`]+)`~{0,2} \|.* \| \S.* \|$/gm)].map((match) => match[1])
    const fields = fieldsOf('deploy/crds/mcpserverentries.yaml')
    expect(fields.length).toBeGreaterThan(20)
    expect(fields.filter((field) => !described.includes(field))).toEqual([])
  })

  it('names the successor, the related proposals and where requests leave from [004-022] [004-023] [004-028] [004-054] [004-098]', () => {
    const [, later = ''] = page.split('## Later: MCPRemoteEndpoint')
    for (const proposal of ['0008', '0009', '0010', '0014', '0026', '0067']) expect(later).toContain(`THV-${proposal}`)
    expect(page).toMatch(/requests leave from the VirtualMCPServer's pod/)
    expect(page).toContain('`headerForward` is for headers that do not authenticate')
    expect(KINDS.map(({ kind }): string => kind)).not.toContain('MCPRemoteEndpoint')
  })
})

describe('docs/adr/0007-remote-servers-without-a-pod.md', () => {
  it('weighs every alternative that was raised [004-050] [004-051] [004-052] [004-057]', () => {
    const page = read('docs/adr/0007-remote-servers-without-a-pod.md')
    for (const alternative of ['Make `oidcConfig` optional', '`direct: true`', 'Extend MCPServer', 'No kind:', 'MCPRemoteEndpoint'])
      expect(page).toContain(alternative)
    expect(page).toContain('gets no `direct` field')
    expect(page).toMatch(/## What it costs\n\nA third word beside MCPServer and MCPRemoteProxy/)
  })
})

describe('docs/adr/0007, the two documents', () => {
  it('names their contradiction about oidcConfig of MCPRemoteProxy, and which one we follow [002-297]', () => {
    const page = read('docs/adr/0007-remote-servers-without-a-pod.md')
    const [, section = ''] = page.split('## What documents 002 and 004 say about `oidcConfig`')
    const text = section.split('\n## ')[0] ?? ''
    expect(text).toContain('They contradict each other.')
    expect(text).toContain('Document 002 (MCPRemoteProxy, line 187)')
    expect(text).toContain('document 004 has it optional')
    expect(text).toMatch(/we follow it/)
    for (const constant of ['Authenticated', 'NoIncomingAuth']) expect(text).toContain(`\`${constant}\``)
  })
})

describe('docs/architecture/operator-design.md', () => {
  const page = read('docs/architecture/operator-design.md')

  it('knows every kind', () => {
    expect(KINDS.filter(({ kind }) => !page.includes(kind)).map(({ kind }) => kind)).toEqual([])
  })

  it('says which settings are fields and which go into podTemplateSpec [002-232]', () => {
    expect(page).toContain('**A field of the spec** is what the operator must understand.')
    expect(page).toContain('**`podTemplateSpec`** is what only Kubernetes must understand.')
  })
})

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
}

/** Paths of all fields in spec and status of the stored version, with `[]` after lists. */
function fieldsOf(crd: string): string[] {
  const { spec } = parse(read(crd)) as { spec: { versions: { storage: boolean; schema: { openAPIV3Schema: SchemaNode } }[] } }
  const paths = (node: SchemaNode, prefix: string): string[] =>
    Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
      `${prefix}${name}`,
      ...paths(child, `${prefix}${name}.`),
      ...(child.items === undefined ? [] : paths(child.items, `${prefix}${name}[].`)),
    ])
  const root = spec.versions.find(({ storage }) => storage)?.schema.openAPIV3Schema.properties ?? {}
  return ['spec', 'status'].flatMap((part) => paths(root[part] ?? {}, ''))
}

function brokenLinks(page: string): string[] {
  return [...withoutCode(read(page)).matchAll(/\]\(([^)\s[\]]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((target) => !/^https?:/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path)
      if (!existsSync(file)) return true
      return anchor !== undefined && statSync(file).isFile() && !anchorsOf(readFileSync(file, 'utf8')).has(anchor)
    })
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^ *```[\s\S]*?^ *```/gm, '').replaceAll(/`[^`\n]+`/g, '')
}

/** As GitHub makes them of headings. */
function anchorsOf(markdown: string): Set<string> {
  const headings = [...markdown.matchAll(/^#+ (.+)$/gm)].map((match) => match[1] ?? '')
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .trim()
        .replace(/\s/g, '-'),
    ),
  )
}

describe('docs/architecture', () => {
  const page = read('docs/architecture/README.md')

  it('leads to the pages on the operator, concepts and deployment modes [002-296]', () => {
    for (const target of ['operator-design.md', 'core-concepts.md', 'deployment-modes.md', '../glossary.md', '../adr/README.md'])
      expect(page).toContain(`(${target})`)
  })

  it('follows a call, a manifest and a registry entry through files that exist', () => {
    for (const heading of ['## One call', '## One manifest', '## One registry entry']) {
      const section = page.slice(page.indexOf(heading)).split('\n## ')[0] ?? ''
      expect(section.match(/`(?:packages|apps|deploy)\/[^`]+`/g)?.length, heading).toBeGreaterThan(4)
    }
  })

  it('explains design, components and reconciliation of the operator [002-001]', () => {
    const design = read('docs/architecture/operator-design.md')
    for (const heading of ['## Two programs', '## The kinds', '## One reconcile', '## What we decided, and why'])
      expect(design).toContain(heading)
  })

  it('explains Kubernetes mode among the deployment modes [002-292]', () => {
    const modes = read('docs/architecture/deployment-modes.md')
    for (const word of ['StatefulSet', 'ConfigMap', 'backendReplicas', 'allowedHosts', 'serviceType']) expect(modes).toContain(word)
  })

  it('explains how a VirtualMCPServer is built: backends, names, lists, eras, status, rights [002-295]', () => {
    expect(page).toContain('(virtual-mcp-server.md)')
    const virtual = read('docs/architecture/virtual-mcp-server.md')
    for (const heading of ['## Who decides what', '## One file', '## Lists from memory', '## Eras', '## Status', '## Rights'])
      expect(virtual).toContain(heading)
    const eras = [...virtual.matchAll(/^\| (legacy|modern) \| (legacy|modern) \|/gm)].map(([, client, backend]) => `${client} ${backend}`)
    expect(new Set(eras)).toEqual(new Set(['legacy legacy', 'legacy modern', 'modern modern', 'modern legacy']))
    const rooms = [...virtual.matchAll(/`((?:packages|apps)\/[^`]+)`/g)].map((match) => match[1] ?? '')
    expect(rooms.length).toBeGreaterThan(5)
    expect(rooms.filter((room) => !existsSync(join(ROOT, room)))).toEqual([])
  })

  it('explains the operator and every kind among the core concepts [002-293]', () => {
    const concepts = read('docs/architecture/core-concepts.md')
    expect(concepts).toContain('**Operator.**')
    for (const { kind } of KINDS) expect(concepts).toContain(`| ${kind} |`)
  })
})
