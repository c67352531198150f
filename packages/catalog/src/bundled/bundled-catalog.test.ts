import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../catalog-entry.ts'
import { checkServerDocument } from '../server-document.ts'
import { documentTags } from '../server-extensions.ts'
import { readUpstreamRegistry } from '../upstream-registry.ts'
import { bundledCatalog } from './bundled-catalog.ts'
import checked from './checked.json' with { type: 'json' }

const { documents, problems } = readUpstreamRegistry(bundledCatalog, { strict: true })

interface Packaged {
  readonly name: string
  readonly packages?: readonly { readonly registryType: string; readonly identifier: string; readonly version: string }[]
}

describe('the bundled catalog', () => {
  it('holds many servers, all without a problem even where the full schema is asked for', () => {
    expect(problems).toEqual([])
    expect(documents.length).toBeGreaterThanOrEqual(25)
  })

  it.each(documents.map((document) => [String(document['name']), document] as const))(
    '%s would pass the public registry',
    (_, document: JsonObject) => {
      expect(checkServerDocument(document, { level: 'official' })).toMatchObject({ ok: true })
      expect(documentTags(document).size).toBeGreaterThan(1)
    },
  )

  it('names no package that was not found on npm or PyPI (node scripts/check-catalog.ts)', () => {
    const packages = (documents as unknown as Packaged[]).flatMap(({ name, packages = [] }) =>
      packages.map(({ registryType, identifier, version }) => [`${registryType}:${identifier}@${version}`, name] as const),
    )
    expect(Object.fromEntries(packages)).toEqual(checked.packages)
    expect(checked.checked).toMatch(/^\d{4}-\d{2}-\d{2}$/)
  })

  it('is in order of names', () => {
    const names = documents.map((document) => String(document['name']))
    expect(names).toEqual(names.toSorted())
  })
})
