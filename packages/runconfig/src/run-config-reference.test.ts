import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { AnyFieldTable } from './field.ts'
import { unsupportedFields } from './middleware-table.ts'
import { readRunConfig } from './read-run-config.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'
import { renderRunConfigReference } from './run-config-reference.ts'

const ROOT = new URL('../../../', import.meta.url)

describe('docs/reference/runconfig.md', () => {
  it('has a row for every field of every part', () => {
    const text = renderRunConfigReference()
    const check = (fields: AnyFieldTable) => {
      for (const [name, field] of Object.entries(fields)) {
        expect(text).toContain(`| \`${name}\` | `)
        const inner = field.reader.fields ?? field.reader.items?.fields
        if (inner) check(inner)
      }
    }
    check(RUN_CONFIG_FIELDS as unknown as AnyFieldTable)
  })
})

describe('deploy/examples/runconfig', async () => {
  const folder = new URL('deploy/examples/runconfig/', ROOT)
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json'))

  it('has one of each kind', () => {
    expect(files.sort()).toEqual([
      'kubernetes-streamable-http.json',
      'login.json',
      'remote-url.json',
      'stdio-npx.json',
      'streamable-http-npx.json',
    ])
  })

  it.each(files)('%s is read without problems and warnings, and can be run', async (name) => {
    const result = readRunConfig(JSON.parse(await readFile(new URL(name, folder), 'utf8')))
    expect(result).toMatchObject({ ok: true, warnings: [] })
    if (result.ok) expect(unsupportedFields(result.config)).toEqual([])
  })
})
