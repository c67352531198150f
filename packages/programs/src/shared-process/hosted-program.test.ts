import { describe, expect, it, vi } from 'vitest'
import { HostedProgram } from './hosted-program.ts'
import { encodeMessage, readFromHost, readToHost } from './messages.ts'

function program() {
  const sent: unknown[] = []
  const onExit = vi.fn()
  const start = { start: 7, args: ['run'], env: { A: '1' }, cwd: '/pod' }
  const hosted = new HostedProgram({ start, write: (line) => sent.push(JSON.parse(line)), onExit })
  return { hosted, sent, onExit }
}

describe('a program that shares its process', () => {
  it('has output and an exit code of its own', () => {
    const { hosted, sent, onExit } = program()
    hosted.writeError('starting\n')
    expect(hosted.writeOutput('served\n')).toBe(true)
    hosted.exit(78)
    hosted.exit(1)
    expect(sent).toEqual([
      { output: 7, stream: 'stderr', text: 'starting\n' },
      { output: 7, stream: 'stdout', text: 'served\n' },
      { exit: 7, code: 78 },
    ])
    expect(onExit).toHaveBeenCalledTimes(1)
  })

  it('hears its signals, and ends by one that it does not handle', () => {
    const { hosted, sent } = program()
    const listener = vi.fn()
    hosted.on('SIGTERM', listener)
    hosted.signal('SIGTERM')
    expect(listener).toHaveBeenCalledTimes(1)
    hosted.off('SIGTERM', listener)
    hosted.signal('SIGTERM')
    expect(sent).toEqual([{ exit: 7, code: 143 }])
  })

  it('closes at its end what its shutdown left open, and at once what is opened later', () => {
    const { hosted, sent } = program()
    const closed: string[] = []
    hosted.onEnd(() => void closed.push('listener'))
    hosted.onEnd(() => {
      throw new Error('stuck')
    })
    hosted.onEnd(() => void closed.push('already closed'))[Symbol.dispose]()
    expect(closed).toEqual([])
    hosted.signal('SIGTERM') // nothing listens to it: as of a shutdown that was cut short
    hosted.onEnd(() => void closed.push('late'))
    expect(closed).toEqual(['listener', 'late'])
    expect(sent).toEqual([
      { output: 7, stream: 'stderr', text: 'closing failed: stuck\n' },
      { exit: 7, code: 143 },
    ])
  })

  it('shuts down after an error that nothing caught, says why, and ends with code 1', () => {
    const { hosted, sent } = program()
    hosted.on('SIGTERM', () => setImmediate(() => hosted.exit(0)))
    hosted.crash(new Error('one'))
    hosted.crash(new Error('two'))
    hosted.exit(0)
    expect(sent).toMatchObject([
      { stream: 'stderr', text: expect.stringContaining('Error: one') },
      { stream: 'stderr', text: expect.stringContaining('Error: two') },
      { exit: 7, code: 1 },
    ])
  })

  it('keeps log lines while its reader is slow, up to a bound, and says how many it dropped', () => {
    const { hosted, sent } = program()
    hosted.hold()
    expect(hosted.writeOutput('audit\n')).toBe(false)
    hosted.writeError('kept\n')
    hosted.writeError(`${'x'.repeat(256 * 1024)}\n`)
    hosted.writeError('also kept\n')
    expect(sent).toEqual([])
    hosted.resume()
    hosted.resume()
    expect(sent).toEqual([
      { output: 7, stream: 'stderr', text: 'kept\nalso kept\n' },
      { output: 7, stream: 'stderr', text: '1 log lines were dropped: they were not read fast enough\n' },
    ])
  })
})

describe('messages', () => {
  it('are lines; a line of something else is none', () => {
    const exit = { exit: 1, code: 0 }
    expect(readFromHost(encodeMessage(exit).trim())).toEqual(exit)
    for (const line of ['', 'hello', '{', '{}', '{"exit":"1","code":0}', '{"output":1}']) expect(readFromHost(line)).toBeUndefined()
    expect(readToHost(encodeMessage({ hold: 3 }).trim())).toEqual({ hold: 3 })
    expect(readToHost('?')).toBeUndefined()
  })

  it('are one line whatever they hold', () => {
    const output = { output: 1, stream: 'stderr', text: 'a\nb\r\u2028c\u2029d' } as const
    const line = encodeMessage(output)
    expect(line.slice(0, -1)).not.toMatch(/[\n\r\u2028\u2029]/)
    expect(readFromHost(line.trim())).toEqual(output)
  })
})
