// A modern server that starts slowly, such as one that must be downloaded first: it reads its first message after 4 s.
import { answer, modern, serve } from './server.mjs';

setTimeout(() => serve(message => answer(modern(message))), 4000);
