import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readConfig } from './read-config.ts'

const root = mkdtempSync(join(tmpdir(), 'registry-root-'))
for (const folder of ['data', 'registry/teams', 'secrets/git']) mkdirSync(join(root, folder), { recursive: true })
afterAll(() => rmSync(root, { recursive: true }))

const TEXT = `
sources:
  - {name: teams, file: {path: /registry/teams/registry.json}}
  - {name: elsewhere, file: {path: /nowhere/at/all.json}}
  - {name: code, git: {repository: "https://git.example.com/r", auth: {username: x, passwordFile: /secrets/git/token}}}
registries: [{name: all, sources: [teams, elsewhere, code]}]
auth: {mode: anonymous, writeTokenFile: /secrets/git/writer}
storage: {path: /data/registry.db}
`

function config(env: Record<string, string>, text = TEXT) {
  const read = readConfig(text, { env, dataDir: '/data', folder: '/config' })
  if (!read.ok) throw new Error(JSON.stringify(read.problems))
  return read.config
}

it('finds mounted files below THV_ROOT, also those that are not there yet, and leaves other paths alone', () => {
  const { sources, storage, auth } = config({ THV_ROOT: root })
  expect(sources).toMatchObject([
    { file: { path: join(root, 'registry/teams/registry.json') } },
    { file: { path: '/nowhere/at/all.json' } },
    { git: { auth: { passwordFile: join(root, 'secrets/git/token') } } },
  ])
  expect(storage).toMatchObject({ path: join(root, 'data/registry.db') })
  expect(auth.writeTokenFile).toBe(join(root, 'secrets/git/writer'))
})

it('finds the files of identity providers', () => {
  const provider = 'name: a, issuerUrl: https://id.example.com, audience: x, introspectionUrl: https://id.example.com/i, clientId: c'
  const files = 'clientSecretFile: /secrets/git/id, caCertPath: /secrets/git/ca.crt, authTokenFile: /nowhere/at/all'
  const { auth } = config(
    { THV_ROOT: root },
    `sources: [{name: a, managed: {}}]\nregistries: [{name: b, sources: [a]}]\nauth: {mode: oauth, oauth: {providers: [{${provider}, ${files}}]}}\n`,
  )
  expect(auth.oauth?.providers).toMatchObject([
    {
      clientSecretFile: join(root, 'secrets/git/id'),
      caCertPath: join(root, 'secrets/git/ca.crt'),
      authTokenFile: '/nowhere/at/all',
    },
  ])
})

it('changes nothing without THV_ROOT', () => {
  expect(config({}).sources[0]).toMatchObject({ file: { path: '/registry/teams/registry.json' } })
  expect(config({}).storage).toMatchObject({ path: '/data/registry.db' })
})
