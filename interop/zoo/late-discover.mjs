// A modern server that starts slowly, as one does that has to be downloaded first: everything is answered, after 4 s.
import { answer, modern, serve } from './server.mjs';

setTimeout(() => serve(message => answer(modern(message))), 4000);
