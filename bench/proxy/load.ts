import { HttpLoadSession } from './http-load.ts'
import type { LoadReport, Order, Reply } from './load-plan.ts'
import { type LoadSession, openAll, runAll } from './load-session.ts'
import { StdioLoadSession, StdioPipe } from './stdio-load.ts'

/* The load generator: a process of its own that takes orders over IPC. */

let sessions: LoadSession[] = []
let pipe: StdioPipe | undefined

process.on('message', (order: Order) => {
  execute(order).then(
    (report) => reply({ ok: true, ...(report !== undefined && { report }) }),
    (error: unknown) => reply({ ok: false, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
process.on('disconnect', () => process.exit())

async function execute(order: Order): Promise<LoadReport | undefined> {
  switch (order.order) {
    case 'open':
      await open(order)
      return undefined
    case 'run':
      return await runAll(sessions, order)
    case 'close':
      await Promise.all(sessions.map((session) => session.close(order.keep ?? false)))
      pipe?.close()
      sessions = []
      pipe = undefined
      return undefined
  }
}

async function open({ target, era, tool, sessions: count }: Order & { order: 'open' }): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => `${process.pid}.${index}`)
  if ('url' in target)
    sessions = names.map((name) => new HttpLoadSession({ url: target.url, headers: target.headers ?? [], era, tool, name }))
  else {
    const opened = new StdioPipe(target.command)
    pipe = opened
    await opened.open(era)
    sessions = names.map((name) => new StdioLoadSession(opened, { era, tool, name }))
  }
  await openAll(sessions)
}

function reply(message: Reply): void {
  process.send?.(message)
}
