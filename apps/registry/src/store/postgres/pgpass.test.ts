import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findPassword, lookupPgpass } from './pgpass.ts'

const query = { host: 'db.example.com', port: 5432, database: 'registry', user: 'app' }

describe('lines of a password file', () => {
  test.each([
    ['db.example.com:5432:registry:app:secret', 'secret'],
    ['*:*:*:*:any', 'any'],
    ['*:*:*:other:no\n*:*:*:app:yes\n*:*:*:*:late', 'yes'],
    ['# *:*:*:*:comment\n*:*:*:app:yes', 'yes'],
    ['*:*:*:app:with:colons:', 'with:colons:'],
    ['*:*:*:app:a\\:b\\\\c', 'a:b\\c'],
    ['*:*:*:app:', ''],
    ['db.example.com:5433:registry:app:port', undefined],
    ['db.example.com:5432:registry:app', undefined],
    ['DB.example.com:5432:registry:app:case', undefined],
    ['*:*:*:\\*:star', undefined],
    ['\n\r\n*:*:*:app:windows\r\n', 'windows'],
    ['', undefined],
  ])('%j gives %j', (text, password) => {
    expect(findPassword(text, query)).toBe(password)
  })

  test('any names and passwords are found again when they are escaped', () => {
    const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !/[\r\n]/.test(text) && !text.startsWith('#'))
    const escaped = (text: string) => text.replace(/[\\:]/g, '\\$&')
    fc.assert(
      fc.property(word, word, word, word, (host, database, user, password) => {
        fc.pre([host, database, user].every((text) => text !== '*'))
        const line = [host, '5432', database, user, password].map(escaped).join(':')
        const decoy = [host, '5432', database, `${user}x`, 'wrong'].map(escaped).join(':')
        expect(findPassword(`${decoy}\n${line}`, { host, port: 5432, database, user })).toBe(password)
      }),
    )
  })
})

describe('password files', () => {
  let home: string
  let warnings: string[]
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'thv-pgpass-'))
    warnings = []
  })
  afterEach(() => rmSync(home, { recursive: true }))
  const write = (name: string, text: string, mode = 0o600) => {
    writeFileSync(join(home, name), text)
    chmodSync(join(home, name), mode)
    return join(home, name)
  }
  const lookup = (env: NodeJS.ProcessEnv = {}) => lookupPgpass(query, { env, home, warn: (message) => warnings.push(message) })

  test('the home folder is HOME, or that of the account where HOME is not set or empty', async () => {
    write('.pgpass', '*:*:*:app:home')
    const withoutAccount = () => {
      throw new Error('this user has no account')
    }
    const found = (env: NodeJS.ProcessEnv, account: () => { homedir: string }) => lookupPgpass(query, { env, account, warn: () => {} })
    expect(await found({ HOME: home }, withoutAccount)).toBe('home')
    for (const env of [{}, { HOME: '' }]) {
      expect(await found(env, () => ({ homedir: home }))).toBe('home')
      expect(await found(env, withoutAccount)).toBeUndefined()
      expect(await found({ ...env, PGPASSFILE: join(home, '.pgpass') }, withoutAccount)).toBe('home')
    }
  })

  test('PGPASSFILE comes first, then the one of the home folder, then none', async () => {
    expect(await lookup()).toBeUndefined()
    write('.pgpass', '*:*:*:app:home')
    expect(await lookup()).toBe('home')
    const named = write('named', '*:*:*:app:named')
    expect(await lookup({ PGPASSFILE: named })).toBe('named')
    write('named', '*:*:*:other:named')
    expect(await lookup({ PGPASSFILE: named })).toBe('home')
    expect(await lookup({ PGPASSFILE: join(home, 'missing') })).toBe('home')
    expect(warnings).toEqual([])
  })

  test('one that others may read is ignored with a warning that shows nothing of it', async () => {
    write('.pgpass', '*:*:*:app:hidden', 0o644)
    expect(await lookup()).toBeUndefined()
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('.pgpass')
    expect(warnings[0]).toContain('0600')
    expect(warnings[0]).not.toContain('hidden')
  })

  test.skipIf(process.getuid?.() !== 0)(
    'one of root may be readable for its group, as a mounted Secret is; one of another user may not',
    async () => {
      for (const mode of [0o440, 0o640]) {
        write('.pgpass', '*:*:*:app:mounted', mode)
        expect(await lookup()).toBe('mounted')
      }
      expect(warnings).toEqual([])
      for (const mode of [0o460, 0o444, 0o450]) {
        write('.pgpass', '*:*:*:app:open', mode)
        expect(await lookup()).toBeUndefined()
      }
      chownSync(write('.pgpass', '*:*:*:app:other', 0o440), 65_534, 65_534)
      expect(await lookup()).toBeUndefined()
      expect(warnings).toHaveLength(4)
    },
  )

  test('ignores a folder with a warning', async () => {
    mkdirSync(join(home, '.pgpass'))
    expect(await lookup()).toBeUndefined()
    expect(warnings).toHaveLength(1)
  })
})
