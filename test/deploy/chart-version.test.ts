import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import released from './released-crds.json' with { type: 'json' }

/*
 * The definitions of a released chart never change under its version. `released-crds.json` holds the last release: who makes the next one
 * writes its version and hash there.
 */

const root = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const chartVersion = (chart: string) =>
  (parse(readFileSync(root(`deploy/charts/${chart}/Chart.yaml`), 'utf8')) as { version: string }).version

function crdHash(): string {
  const hash = createHash('sha256')
  for (const file of readdirSync(root('deploy/crds')).sort()) hash.update(`${file}\n${readFileSync(root(`deploy/crds/${file}`), 'utf8')}\n`)
  return hash.digest('hex')
}

/** Whether a chart with these definitions may have this version. */
function mayHave(version: string, hash: string): boolean {
  return hash === released.sha256
    ? isAtLeast(version, released.version)
    : version !== released.version && isAtLeast(version, released.version)
}

function isAtLeast(version: string, other: string): boolean {
  const [a, b] = [version, other].map((text) => text.split('.').map(Number))
  for (const index of [0, 1, 2]) if (a?.[index] !== b?.[index]) return (a?.[index] ?? 0) > (b?.[index] ?? 0)
  return true
}

describe('the chart of the definitions', () => {
  it('[003-062] has a higher version than the last release when a definition differs from it', () => {
    expect({
      version: chartVersion('toolhive-operator-crds'),
      ok: mayHave(chartVersion('toolhive-operator-crds'), crdHash()),
    }).toMatchObject({ ok: true })
    // The operator needs the definitions of its own version.
    expect(chartVersion('toolhive-operator')).toBe(chartVersion('toolhive-operator-crds'))
  })

  it.each([
    ['0.1.0', released.sha256, true],
    ['0.1.0', 'changed', false],
    ['0.0.9', 'changed', false],
    ['0.1.1', 'changed', true],
    ['0.10.0', 'changed', true],
  ])('[003-062] version %s is judged against the last release', (version, hash, expected) => {
    expect(mayHave(version, hash)).toBe(expected)
  })
})
