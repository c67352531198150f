import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { KINDS } from './kinds/kinds.ts'
import { fixturesOf } from './testing/fixtures.ts'

/* First steps with a new cluster: `thv` piped into kubectl. On a server of its own, because nothing may be installed yet. */

const FIXTURES = new URL('../../../test/fixtures/resources/', import.meta.url)
const THV = fileURLToPath(new URL('../../../apps/cli/bin/thv.js', import.meta.url))

describeCluster('thv crds | kubectl apply -f -', () => {
  let server: TestServer
  let applied: { stdout: string; stderr: string; status: number | null }

  beforeAll(async () => {
    server = await startTestServer()
    const crds = execFileSync(process.execPath, [THV, 'crds'], { maxBuffer: 16 * 1024 * 1024, encoding: 'utf8' })
    applied = kubectl(['apply', '-f', '-'], crds)
  })
  afterAll(() => server?.stop())

  function kubectl(args: string[], input = '') {
    return spawnSync(server.kubectlPath, ['--kubeconfig', server.kubeconfigPath, ...args], {
      encoding: 'utf8',
      input,
      timeout: 60_000,
      maxBuffer: 64 << 20,
    })
  }

  /** The server publishes what it can explain a while after a kind is Established. */
  async function explain(...args: string[]): Promise<string> {
    const explained = () => {
      const { stdout, stderr, status } = kubectl(['explain', ...args])
      expect({ status, stderr }).toMatchObject({ status: 0 })
      return stdout
    }
    return await vi.waitFor(explained, { timeout: 60_000, interval: 500 })
  }

  it('installs nine definitions without a warning', () => {
    expect(applied.status).toBe(0)
    expect(applied.stderr).toBe('')
    expect(applied.stdout.trim().split('\n')).toHaveLength(KINDS.length)
  })

  it('gets each Established, with accepted names and a structural schema', () => {
    const names = KINDS.map((definition) => `crd/${definition.plural}.toolhive.stacklok.dev`)
    expect(kubectl(['wait', '--for=condition=Established', '--timeout=30s', ...names]).status).toBe(0)
    const list = JSON.parse(kubectl(['get', 'crd', '-o', 'json']).stdout) as {
      items: { status: { conditions: { type: string; status: string }[] } }[]
    }
    expect(list.items.length).toBeGreaterThanOrEqual(KINDS.length)
    for (const { status } of list.items) {
      expect(Object.fromEntries(status.conditions.map((condition) => [condition.type, condition.status]))).toEqual({
        NamesAccepted: 'True',
        Established: 'True',
      })
    }
  })

  it.each(KINDS.map((definition) => [definition.kind, definition] as const))('explains every field of %s', async (_kind, definition) => {
    expect(fieldsWithoutText(await explain(`${definition.plural}.spec`, '--recursive=false'))).toEqual([])
  })

  it('explains virtualmcpserver.spec.config.aggregation field by field', async () => {
    const stdout = await explain('virtualmcpserver.spec.config.aggregation')
    for (const field of ['conflictResolution', 'conflictResolutionConfig', 'tools', 'excludeAllTools'])
      expect(stdout).toContain(`  ${field}\t`)
    expect(fieldsWithoutText(stdout)).toEqual([])
  })

  it.each(KINDS.map((definition) => [definition.kind, definition] as const))(
    'takes every manifest of %s [002-009]',
    (_kind, definition) => {
      const { stdout, stderr, status } = kubectl([
        'apply',
        '--dry-run=server',
        '-f',
        fileURLToPath(new URL(`${definition.plural}/`, FIXTURES)),
      ])
      expect(stderr).toBe('')
      expect(status).toBe(0)
      expect(stdout.trim().split('\n')).toHaveLength(fixturesOf(definition.plural).length)
    },
  )

  it('prints entries with phase, transport, URL with its scheme, group and age, in every spelling [004-083] [004-092]', () => {
    const entry = (name: string, spec: object) =>
      JSON.stringify({
        apiVersion: 'toolhive.stacklok.dev/v1alpha1',
        kind: 'MCPServerEntry',
        metadata: { name },
        spec: { transport: 'sse', ...spec },
      })
    kubectl(['apply', '-f', '-'], entry('one', { remoteURL: 'https://one.example.com/mcp', groupRef: 'engineering' }))
    kubectl(
      ['apply', '-f', '-'],
      entry('two', { remoteUrl: 'http://two.example.com/mcp', groupRef: { name: 'engineering' }, insecureAllowHTTP: true }),
    )
    for (const name of ['one', 'two']) {
      kubectl([
        'patch',
        'mcpentry',
        name,
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":"Ready","group":"engineering"}}',
      ])
    }
    const [head = '', one = '', two = ''] = kubectl(['get', 'mcpentry', '-n', 'default']).stdout.split('\n')
    expect(head).toMatch(/^NAME +PHASE +TRANSPORT +REMOTE URL +GROUP .*AGE$/)
    expect(one).toMatch(/^one +Ready +sse +https:\/\/one\.example\.com\/mcp +engineering .*\d+s$/)
    expect(two).toMatch(/^two +Ready +sse +http:\/\/two\.example\.com\/mcp +engineering .*\d+s$/)
  })

  it('lists by short name and all kinds by category', () => {
    for (const shortName of KINDS.flatMap((definition) => definition.shortNames)) expect(kubectl(['get', shortName]).status).toBe(0)
    expect(kubectl(['get', 'toolhive', '-A']).status).toBe(0)
  })
})

describe('fieldsWithoutText', () => {
  it('finds a field whose description is missing', () => {
    expect(fieldsWithoutText('FIELDS:\n  a\t<string>\n    Text.\n\n  b\t<string>\n    <no description>\n')).toEqual(['b'])
    expect(fieldsWithoutText('FIELDS:\n  a\t<string>\n\n  b\t<string>\n    Text.\n')).toEqual(['a'])
  })
})

/** Names of the fields in the output of `kubectl explain` that have no description below them. */
function fieldsWithoutText(output: string): string[] {
  const lines = (output.split('FIELDS:\n')[1] ?? '').split('\n')
  const fields = lines.flatMap((line, index) => (/^ {2}\S+\t/.test(line) ? [index] : []))
  if (fields.length === 0) return ['(no fields at all)']
  return fields
    .filter((index) => {
      const next = lines.slice(index + 1).find((line) => !/^ {2}(enum|possible enum values)/.test(line)) ?? ''
      return !/^ {4}\S/.test(next) || next.includes('<no description>')
    })
    .map((index) => lines[index]?.trim().split('\t')[0] ?? '')
}
