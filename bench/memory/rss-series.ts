import { readFileSync } from 'node:fs'

/** RSS of a process over time. */
export interface RssSeries {
  readonly name: string
  readonly points: readonly { readonly seconds: number; readonly mb: number }[]
}

const EVERY_MS = 250
const [WIDTH, HEIGHT] = [720, 300]
const MARGIN = { left: 50, right: 110, top: 20, bottom: 40 }
const COLORS = ['#888888', '#0b6e4f', '#b5651d', '#3a5ba0']

/** Looks at the process from outside until it is stopped. */
export function recordRss(name: string, pid: number): { stop(): RssSeries } {
  const points: { seconds: number; mb: number }[] = []
  const started = performance.now()
  const look = () => {
    const mb = rssOf(pid)
    if (mb !== undefined) points.push({ seconds: (performance.now() - started) / 1000, mb })
  }
  look()
  const timer = setInterval(look, EVERY_MS).unref() // one that is not stopped must not keep the benchmark from ending
  return {
    stop() {
      clearInterval(timer)
      return { name, points }
    },
  }
}

function rssOf(pid: number): number | undefined {
  try {
    const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kb === undefined ? undefined : Number(kb) / 1024
  } catch {
    return undefined // it has ended
  }
}

/** One line per series, from zero on. */
export function drawSvg(title: string, series: readonly RssSeries[]): string {
  const all = series.flatMap(({ points }) => points)
  const maxSeconds = Math.max(1, ...all.map(({ seconds }) => seconds))
  const maxMb = Math.ceil(Math.max(1, ...all.map(({ mb }) => mb)) / 50) * 50
  const x = (seconds: number) => round(MARGIN.left + (seconds / maxSeconds) * (WIDTH - MARGIN.left - MARGIN.right))
  const y = (mb: number) => round(HEIGHT - MARGIN.bottom - (mb / maxMb) * (HEIGHT - MARGIN.top - MARGIN.bottom))
  const grid = steps(maxMb, 50).map(
    (mb) =>
      `<line x1="${x(0)}" y1="${y(mb)}" x2="${x(maxSeconds)}" y2="${y(mb)}" stroke="#dddddd"/><text x="${x(0) - 6}" y="${y(mb) + 4}" text-anchor="end">${mb}</text>`,
  )
  const ticks = steps(maxSeconds, tickOf(maxSeconds)).map(
    (s) => `<text x="${x(s)}" y="${HEIGHT - MARGIN.bottom + 16}" text-anchor="middle">${s}</text>`,
  )
  const lines = series.map(({ name, points }, index) => {
    const color = COLORS[index % COLORS.length]
    const last = points.at(-1)
    const label = last && `<text x="${x(last.seconds) + 6}" y="${y(last.mb) + 4}" fill="${color}">${name} ${last.mb.toFixed(0)} MB</text>`
    return `<polyline fill="none" stroke="${color}" stroke-width="2" points="${points.map((point) => `${x(point.seconds)},${y(point.mb)}`).join(' ')}"/>${label ?? ''}`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<text x="${MARGIN.left}" y="14">${title}</text>`,
    ...grid,
    ...ticks,
    `<text x="${WIDTH / 2}" y="${HEIGHT - 6}" text-anchor="middle">seconds</text>`,
    ...lines,
    '</svg>\n',
  ].join('\n')
}

/** Seconds between labels: as many as there is room for. */
function tickOf(seconds: number): number {
  return [10, 30, 60, 120, 300].find((tick) => seconds / tick <= 15) ?? 600
}

function steps(end: number, by: number): number[] {
  return Array.from({ length: Math.floor(end / by) + 1 }, (_, index) => index * by)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
