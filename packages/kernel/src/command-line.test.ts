import { describe, expect, it } from 'vitest'
import { runCommandLine } from './command-line.ts'

describe('runCommandLine', () => {
  const program = (outcome: () => unknown) => ({
    parseAsync: async () => outcome(),
    exitOverride: () => expect.fail('not here'),
    configureOutput: () => expect.fail('not here'),
  })
  const fails = (code: string, exitCode: number, message: string) => () => {
    throw Object.assign(new Error(message), { code, exitCode })
  }
  const message = (problem: string) => `${problem}; "x --help" lists what there is`

  it('says what is wrong with the words, and where to read on', async () => {
    const wrong = program(fails('commander.unknownOption', 1, "error: unknown option '--no'"))
    await expect(runCommandLine(wrong, [], { message })).rejects.toMatchObject({
      code: 'usage',
      message: `unknown option '--no'; "x --help" lists what there is`,
    })
  })

  it('ends well after help and version', async () => {
    await expect(runCommandLine(program(fails('commander.helpDisplayed', 0, '(outputHelp)')), [], { message })).resolves.toBeUndefined()
  })

  it('asks for the help of a command that needs another one behind it', async () => {
    let asked = 0
    const missing = program(fails('commander.help', 1, '(outputHelp)'))
    await runCommandLine(missing, [], { message, onCommandMissing: () => asked++ })
    expect(asked).toBe(1)
  })

  it('passes on what a command itself fails with', async () => {
    const own = Object.assign(new Error('no such file'), { code: 'ENOENT' })
    const failing = program(() => {
      throw own
    })
    await expect(runCommandLine(failing, [], { message })).rejects.toBe(own)
  })
})
