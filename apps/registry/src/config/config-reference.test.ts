import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { problemLine } from './config-problem.ts'
import { renderConfigReference } from './config-reference.ts'
import { readConfig } from './read-config.ts'

const root = new URL('../../../../', import.meta.url)

it('describes every key', () => {
  const text = renderConfigReference()
  for (const line of text.split('\n').filter((one) => /^\| `[a-z]/.test(one)))
    expect(line.split(' | ')[3] ?? 'a row of another table').toMatch(/\S/)
  for (const key of [
    '`git.auth.passwordFile`',
    '`syncPolicy.interval`',
    '`oauth.providers[].issuerUrl`',
    '`authz.roles.superAdmin`',
    '`cors.origins`',
  ])
    expect(text).toContain(key)
  expect(text).toContain('`THV_REGISTRY_DATABASE_MIGRATIONPASSWORD`')
})

it('is what is in the docs', () => {
  expect(readFileSync(new URL('docs/reference/registry-config.md', root), 'utf8')).toBe(renderConfigReference())
})

it.each(readdirSync(new URL('deploy/examples/registry/', root)).filter((name) => name.endsWith('.yaml')))(
  'the example %s is good',
  (name) => {
    const url = new URL(`deploy/examples/registry/${name}`, root)
    const result = readConfig(readFileSync(url, 'utf8'), { env: { DATABASE_PASSWORD: 'x' }, dataDir: '/data', folder: '/etc/registry' })
    expect(result.ok ? [] : result.problems.map((problem) => problemLine(name, problem))).toEqual([])
  },
)
