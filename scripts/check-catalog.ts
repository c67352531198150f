import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from './run.ts'

/*
 * node scripts/check-catalog.ts: asks npm and PyPI whether every package of the bundled catalog is there in its version, and whether
 * the package names the server as we do, and writes down when that was so. Not part of CI: it is about the world, not about a change.
 */

interface Package {
  readonly registryType: string
  readonly identifier: string
  readonly version: string
}

interface Server {
  readonly name: string
  readonly packages?: readonly Package[]
}

const LIMIT_MS = 60_000
const FOLDER = join(ROOT, 'packages/catalog/src/bundled')
const exec = promisify(execFile)

const { data } = JSON.parse(readFileSync(join(FOLDER, 'catalog.json'), 'utf8')) as { data: { servers: readonly Server[] } }
const packages = data.servers.flatMap(({ name, packages = [] }) => packages.map((each) => ({ server: name, ...each })))
const findings: string[] = []
const found: Record<string, string> = {}
for (const each of packages) {
  const id = `${each.registryType}:${each.identifier}@${each.version}`
  const problem = await problemOf(each).catch((error: Error) => error.message.split('\n')[0])
  if (problem === undefined) found[id] = each.server
  else findings.push(`${id}: ${problem}`)
  console.log(`${problem === undefined ? '✓' : '✗'} ${id}${problem === undefined ? '' : ` ${problem}`}`)
}
if (findings.length > 0) {
  console.error(`${findings.length} of ${packages.length} packages are not as the catalog says; nothing was written down`)
  process.exitCode = 1
} else {
  const record = { checked: new Date().toISOString().slice(0, 10), packages: found }
  writeFileSync(join(FOLDER, 'checked.json'), `${JSON.stringify(record, null, 2)}\n`)
  console.log(`all ${packages.length} packages are there`)
}

async function problemOf({ server, registryType, identifier, version }: Package & { server: string }): Promise<string | undefined> {
  if (registryType === 'npm') {
    const { stdout } = await exec('npm', ['view', `${identifier}@${version}`, 'name', 'mcpName', '--json'], { timeout: LIMIT_MS })
    if (stdout.trim() === '') return 'npm has no such version'
    const { mcpName } = JSON.parse(stdout) as { mcpName?: string }
    return mcpName === undefined || mcpName === server ? undefined : `calls its server ${mcpName}, and the catalog ${server}`
  }
  if (registryType === 'pypi') {
    const { stdout } = await exec('python3', ['-m', 'pip', 'index', 'versions', identifier], { timeout: LIMIT_MS })
    const versions = /Available versions: (.*)/.exec(stdout)?.[1]?.split(', ') ?? []
    return versions.includes(version) ? undefined : 'PyPI has no such version'
  }
  return `packages of ${registryType} cannot be checked`
}
