import { startRegistry } from './registry/registry-subject.ts'
const count = Number(process.argv[2] ?? 10000)
{
await using registry = await startRegistry({ count, storage: '' })
import('node:fs').then(fs => { for (const t of fs.readdirSync('/proc/' + registry.process.pid + '/task')) { const s = fs.readFileSync('/proc/' + registry.process.pid + '/task/' + t + '/stat', 'utf8'); const ms = Number(fs.readFileSync('/proc/' + registry.process.pid + '/task/' + t + '/schedstat', 'utf8').split(' ')[0]) / 1e6; if (ms > 30) console.log('  ', s.slice(s.indexOf('('), s.indexOf(')') + 1), ms.toFixed(0)) } })
const u = await registry.process.usage()
console.log(count, 'listed', registry.listedMs.toFixed(0), 'searched', registry.searchedMs.toFixed(0), 'rss', (u.rssKb / 1024).toFixed(0), 'cpu ms', u.cpuUs / 1000)
const g = await registry.process.usage({ gc: true }); console.log('after gc rss', (g.rssKb / 1024).toFixed(0), 'heap', (g.heapKb / 1024).toFixed(0))
if (process.argv[3]) { await registry.stallMs(); const c0 = (await registry.process.usage()).cpuUs; const ms = await registry.change(Math.ceil(count / 100)); const c1 = (await registry.process.usage()); console.log('1% sync', ms.toFixed(0), 'ms; cpu', ((c1.cpuUs - c0) / 1000).toFixed(0), 'stall', await registry.stallMs(), 'rss', (c1.rssKb / 1024).toFixed(0)) }
}
