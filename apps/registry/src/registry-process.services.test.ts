/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration holds such */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import { expect, onTestFinished, test } from 'vitest'
import { SERVER_ROLE } from './store/postgres/server-role.ts'
import { processStarter } from './testing/registry-process.ts'
import { until } from './testing/until.ts'

describePostgres('the program with PostgreSQL', () => {
  test('migrates, runs as two replicas that start at once, and migrates back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'registry-replicas-'))
    const processes = processStarter(folder)
    onTestFinished(() => {
      processes[Symbol.dispose]()
      rmSync(folder, { recursive: true })
    })
    const { host, port, database, user, password, sql } = await testPostgres().createDatabase()
    const config = join(folder, 'config.yaml')
    writeFileSync(
      config,
      `sources: [{name: own, managed: {}}]\nregistries: [{name: all, sources: [own]}]\nauth: {mode: anonymous}\n` +
        `database:\n  host: ${host}\n  port: ${port}\n  database: ${database}\n  user: ${user}\n  password: \${DB_PASSWORD}\n  sslMode: require\n`,
    )
    const env = { DB_PASSWORD: password }
    const migrate = (...args: string[]) => processes.start(['migrate', ...args, '--config', config], env).ended

    expect(await migrate('up')).toMatchObject({ code: 2, err: expect.stringContaining('pass --yes') })
    expect(await migrate('up', '--yes')).toMatchObject({ code: 0, out: expect.stringMatching(/^the database is at version [1-9]\d*\n$/) })
    // An administrator has made the role meanwhile: the next call gives it its rights, although there is nothing to migrate.
    await sql(`DO $$ BEGIN CREATE ROLE ${SERVER_ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
    await sql(`REVOKE ALL ON entry FROM ${SERVER_ROLE}`)
    expect(await migrate('up')).toMatchObject({ code: 0, out: expect.stringContaining('nothing to do') })
    expect(await sql(`SELECT has_table_privilege('${SERVER_ROLE}', 'entry', 'SELECT')`)).toBe('t')

    const [one, two] = await Promise.all([processes.serve(['--config', config], env), processes.serve(['--config', config], env)])
    const document = {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'com.example/shared',
      description: 'A server that all replicas know',
      version: '1.0.0',
      remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
    }
    const published = await fetch(`${one.url}/registry/all/v0.1/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(document),
    })
    expect(published.status).toBe(200)
    const seen = await until(async () => {
      const answer = await fetch(`${two.url}/registry/all/v0.1/servers/com.example%2Fshared/versions/1.0.0`)
      return answer.ok && answer.json()
    })
    expect(seen).toMatchObject({ server: document })
    for (const replica of [one, two]) {
      replica.child.kill('SIGTERM')
      const { code, err } = await replica.ended
      expect(code).toBe(0)
      expect(err).not.toContain(password)
    }
    expect(await migrate('down', '-n', '1000', '--yes')).toMatchObject({ code: 0, out: 'the database is at version 0\n' })
  })

  test('says that the database cannot be reached, without the password', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'registry-replicas-'))
    const processes = processStarter(folder)
    onTestFinished(() => {
      processes[Symbol.dispose]()
      rmSync(folder, { recursive: true })
    })
    const { host, port, database, user } = await testPostgres().createDatabase()
    const config = join(folder, 'config.yaml')
    writeFileSync(
      config,
      `sources: [{name: own, managed: {}}]\nregistries: [{name: all, sources: [own]}]\nauth: {mode: anonymous}\n` +
        `database: {host: ${host}, port: ${port}, database: ${database}, user: ${user}, password: "\${DB_PASSWORD}"}\n`,
    )
    const { code, err } = await processes.start(['serve', '--config', config], { DB_PASSWORD: 'wrong-hunter2' }).ended
    expect(code).toBe(1)
    expect(err).toMatch(/thv-registry-api: .*password/)
    expect(err).not.toContain('hunter2')
  })
})
