import { type ChildProcess, spawn } from 'node:child_process'
import { callText, checkAnswer, INITIALIZE, INITIALIZED } from './load-messages.ts'
import type { Era, Tool } from './load-plan.ts'
import type { LoadSession } from './load-session.ts'

/** A stdio server with the load generator as its only client; the sessions share the pipe and are distinguished by their ids. */
export class StdioPipe {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (line: string) => void>()
  #rest = ''
  #lastId = 0

  constructor([file = '', ...args]: readonly string[]) {
    this.#child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdout?.setEncoding('latin1').on('data', (chunk: string) => this.#received(chunk))
  }

  async open(era: Era): Promise<void> {
    if (era === 'modern') return
    await this.#send(0, INITIALIZE)
    this.#child.stdin?.write(`${INITIALIZED}\n`)
  }

  /** The id is part of what is sent, so it is made here. */
  request(textOf: (id: number) => string): { id: number; answer: Promise<string> } {
    const id = ++this.#lastId
    return { id, answer: this.#send(id, textOf(id)) }
  }

  close(): void {
    this.#child.stdin?.end()
  }

  #send(id: number, text: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#waiting.set(id, resolve)
    this.#child.stdin?.write(`${text}\n`)
    return promise
  }

  #received(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const id = Number(/"id":(\d+)/.exec(line)?.[1])
      this.#waiting.get(id)?.(line)
      this.#waiting.delete(id)
    }
  }
}

export class StdioLoadSession implements LoadSession {
  readonly #pipe: StdioPipe
  readonly #options: { readonly era: Era; readonly tool: Tool; readonly name: string }
  #calls = 0

  constructor(pipe: StdioPipe, options: { readonly era: Era; readonly tool: Tool; readonly name: string }) {
    this.#pipe = pipe
    this.#options = options
  }

  async open(): Promise<void> {}

  async call(): Promise<void> {
    const { era, tool, name } = this.#options
    const text = `${name}.${++this.#calls}`
    const { id, answer } = this.#pipe.request((made) => callText(era, tool, { id: made, text }))
    checkAnswer(await answer, { era, id, text })
  }

  async close(): Promise<void> {}
}
