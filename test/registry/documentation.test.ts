import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { problemLine } from '../../apps/registry/src/config/config-problem.ts'
import { readConfig } from '../../apps/registry/src/config/read-config.ts'

/* Examples in the pages about the registry work as shown. */

const PAGES = new URL('../../docs/how-to/', import.meta.url)
const blocks = readdirSync(PAGES)
  .filter((name) => name.includes('registry'))
  .flatMap((page) => {
    const text = readFileSync(new URL(page, PAGES), 'utf8')
    return [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map((match, index) => ({ page, number: index + 1, yaml: match[1] ?? '' }))
  })
  // Manifests are applied by the tests of the operator; what they hold for the server is read here.
  .flatMap((block) => {
    if (!block.yaml.startsWith('apiVersion:')) return [block]
    const manifests = parseAllDocuments(block.yaml).map((document) => document.toJS() as { spec?: { configYAML?: string } })
    return manifests.flatMap(({ spec }) => (spec?.configYAML === undefined ? [] : [{ ...block, yaml: spec.configYAML }]))
  })

it('there are some', () => {
  expect(blocks.length).toBeGreaterThan(10)
})

it('the page about sources shows a kubernetes source [001-114]', () => {
  expect(blocks.filter(({ page, yaml }) => page === 'registry-sources.md' && yaml.includes('kubernetes:'))).toHaveLength(1)
})

it.each(blocks)('configuration $number of $page is good', ({ page, yaml }) => {
  const options = { env: { DATABASE_PASSWORD: 'x' }, dataDir: '/data', folder: '/etc/registry' }
  const result = readConfig(JSON.stringify(completed(parse(yaml))), options)
  expect(result.ok ? result.warnings : result.problems.map((problem) => problemLine(page, problem))).toEqual([])
})

interface Shown {
  sources?: readonly { readonly name: string; readonly claims?: unknown }[]
  registries?: readonly { readonly name: string; readonly sources: readonly string[]; readonly claims?: unknown }[]
  auth?: { mode?: string; oauth?: unknown; authz?: unknown }
  readonly [key: string]: unknown
}

/** A part of a configuration with what the page says elsewhere. */
function completed(shown: Shown | readonly { readonly name: string }[]): Shown {
  const part: Shown = Array.isArray(shown) ? { sources: shown } : (shown as Shown)
  const claims = { company: 'example' }
  const sources = part.sources ?? [{ name: 'own', managed: {}, ...(part.auth?.authz !== undefined && { claims }) }]
  const hasClaims = sources.some((source) => source.claims !== undefined)
  const registries = part.registries ?? [{ name: 'default', sources: sources.map(({ name }) => name), ...(hasClaims && { claims }) }]
  const oauth = { providers: [{ name: 'idp', issuerUrl: 'https://idp.example.com', audience: 'mcp-registry' }] }
  const anonymous = { mode: 'anonymous' }
  const authz = { roles: { superAdmin: [{ groups: 'admins' }] } }
  const auth = part.auth?.mode === 'anonymous' ? part.auth : part.auth ? { oauth, ...part.auth } : hasClaims ? { oauth, authz } : anonymous
  return { ...part, sources, registries, auth }
}
