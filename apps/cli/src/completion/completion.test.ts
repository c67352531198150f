import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { runThv } from '../testing/run-thv.ts'

const script = async (shell: string) => (await runThv(['completion', shell])).out

/** The words that bash offers for a line; the last word is the one under the cursor. */
async function offered(...words: string[]): Promise<string[]> {
  const run = `${await script('bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _thv; printf '%s\\n' "\${COMPREPLY[@]}"`
  const out = execFileSync('bash', ['--norc', '-c', run, 'bash', 'thv', ...words], { encoding: 'utf8', cwd: import.meta.dirname })
  return out.split('\n').filter((line) => line !== '')
}

describe('thv completion bash', () => {
  it('offers commands and their other names', async () => {
    expect(await offered('l')).toEqual(['ls', 'list', 'login', 'logout', 'logs'])
    expect(await offered('')).toEqual(expect.arrayContaining(['up', 'down', 'rm', 'completion', 'help', 'version']))
  })

  it.each([
    [['get', '--fi'], ['--field-selector']],
    [['list', '--all'], ['--all-namespaces']],
    [['get', '-o', 'y'], ['yaml']],
    [
      ['call', 'x', 'y', '--output', ''],
      ['text', 'json'],
    ],
    [['completion', 'b'], ['bash']],
    [['help', 'appl'], ['apply']],
    [['completion', 'bash', ''], []],
    [['apply', '-f', 'bash-s'], ['bash-script.ts']],
    [['up', '--bar'], []],
  ])('thv %j offers %j', async (words, expected) => {
    expect(await offered(...words)).toEqual(expected)
  })
})

describe.each(['bash', 'zsh', 'fish'])('thv completion %s', (shell) => {
  it('has every command and says how to load it', async () => {
    const text = await script(shell)
    const { out } = await runThv(['help'])
    const names = [...out.matchAll(/^ {2}([a-z]+)(?:, ([a-z]+))? {2,}/gm)].flatMap(([, ...each]) =>
      each.filter((name) => name !== undefined),
    )
    expect(names.length).toBeGreaterThan(15)
    for (const name of names) expect(text).toMatch(new RegExp(`\\b${name}\\b`))
    expect(text).toContain(`thv completion ${shell}`)
  })
})
