import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { KINDS } from '@thv/resources/kinds/kinds'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, it } from 'vitest'
import { kubectl } from './kubectl.ts'

/* Every example for the operator is taken by the API server as it is, and what one names of our kinds it brings along. */

const FOLDER = new URL('../../deploy/examples/operator/', import.meta.url)
const yamlIn = (folder: URL) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'))
const QUICK_START = '../quickstart/'
const FILES = [...yamlIn(FOLDER), ...yamlIn(new URL(QUICK_START, FOLDER)).map((name) => `${QUICK_START}${name}`)]
const read = (file: string) => manifestsIn(readFileSync(new URL(file, FOLDER), 'utf8'))
const OUR_KINDS = KINDS.map((definition) => definition.kind)

describeCluster('examples of the operator', () => {
  let namespace: string

  beforeAll(async () => {
    const client = adminClient(sharedCluster())
    await installCrds(client)
    await client.close()
    namespace = await testNamespace('examples')
  })

  it.each(FILES)('%s applies', (file) => {
    const path = fileURLToPath(new URL(file, FOLDER))
    const { code, stdout, stderr } = kubectl(['apply', '--namespace', namespace, '--dry-run=server', '--validate=strict', '-f', path])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trim().split('\n')).toHaveLength(read(file).length)
  })

  it.each(manifestsInPages())('the manifest $name in $page applies', ({ manifest }) => {
    const args = ['apply', '--namespace', namespace, '--dry-run=server', '--validate=strict', '-f', '-']
    expect(kubectl(args, manifest)).toMatchObject({ code: 0, stderr: '' })
  })

  it('hold every kind [002-192]', () => {
    const kinds = new Set(FILES.flatMap((file) => read(file).map((each) => each.kind)))
    expect(OUR_KINDS.filter((kind) => !kinds.has(kind))).toEqual([])
  })

  // Those that design document 002 cites; the test above applies them.
  it.each([
    ['mcp-servers/mcpserver_github.yaml', '[002-074]'],
    ['mcp-servers/mcpserver_with_configmap_oidc.yaml', ''],
    ['mcp-servers/mcpserver_with_pod_template.yaml', ''],
    ['mcp-servers/mcpserver_fetch_tools_filter.yaml', ''],
    ['mcp-registries/git-source.yaml', '[002-081]'],
    ['mcp-registries/configmap-source.yaml', '[002-081]'],
    ['composite-tools/answer-customer.yaml', '[002-191]'],
  ])('hold %s %s', (file, _ids) => {
    expect(FILES).toContain(file)
  })

  it.each(FILES)('%s brings the objects of our kinds that it names', (file) => {
    // Those of the quick start are applied together.
    const applied = file.startsWith(QUICK_START) ? FILES.filter((other) => other.startsWith(QUICK_START)) : [file]
    const present = new Set(applied.flatMap(read).map((each) => `${each.kind}/${each.metadata.name}`))
    const named = read(file).flatMap(({ spec }) => referencesIn(spec))
    expect(named.filter((reference) => !present.has(reference))).toEqual([])
  })
})

/** Blocks of the pages that are whole manifests. */
function manifestsInPages(): { page: string; name: string; manifest: string }[] {
  const folder = new URL('../../docs/', import.meta.url)
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  return pages.flatMap((page) =>
    [...readFileSync(new URL(page, folder), 'utf8').matchAll(/^( *)```yaml\n([\s\S]*?)^ *```/gm)]
      .map(([, indent = '', text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), '').replaceAll(/^ {2}namespace: .*\n/gm, ''))
      // The definitions of the Gateway API are the user's; the tests of the kubernetes source apply routes.
      .filter((text) => text.startsWith('apiVersion: ') && !text.startsWith('apiVersion: gateway.networking.k8s.io/'))
      .map((manifest) => ({ page, name: manifestsIn(manifest)[0]?.metadata.name ?? '', manifest })),
  )
}

const REFERENCES = { groupRef: 'MCPGroup', toolConfigRef: 'MCPToolConfig', externalAuthConfigRef: 'MCPExternalAuthConfig' } as const

function referencesIn(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(referencesIn)
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) => {
    const kind = REFERENCES[key as keyof typeof REFERENCES]
    return kind ? [`${kind}/${(value as { name: string }).name}`] : referencesIn(value)
  })
}
