import { expect, it } from 'vitest'
import { createCatalog } from '../views/catalog.ts'
import { fill, stored } from '../views/testing/view-tools.ts'
import { allEntries } from './all-entries.ts'
import { entryPage } from './entry-page.ts'

it('has 500 entries at most, also when one server has more versions', async () => {
  const catalog = createCatalog()
  const versions = Array.from({ length: 1_234 }, (_, i) => `1.0.${i}`)
  fill(catalog, [
    stored('a', 'x/a', { revision: 1 }),
    ...versions.map((version) => stored('a', 'x/b', { version, revision: 2 })),
    stored('b', 'x/b', { revision: 3 }),
    stored('a', 'x/c', { revision: 4 }),
  ])
  const sizes: number[] = []
  const all = await allEntries(async (after) => {
    const page = entryPage(catalog, 'a', after)
    sizes.push(page.entries.length)
    return page
  })
  expect(sizes).toEqual([500, 500, 236])
  expect(all.map(({ name, version }) => `${name}@${version}`)).toEqual([
    'x/a@1.0.0',
    ...versions.map((version) => `x/b@${version}`),
    'x/c@1.0.0',
  ])
})
